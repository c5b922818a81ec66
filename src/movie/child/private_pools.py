"""The segments of CUDA graphs and MemPools, noted before they can be given back.

Up to 2.8, torch does not say in its history which pool an event is of. The final snapshot tells it of the segments that
are there at the end. Those that are not have to be looked at earlier: when pools may have grown and the program is
about to call what gives memory back. (What stays unknown: pools whose memory an allocation gives back on its own, when
it finds none, before any such call.)
"""

from __future__ import annotations

import os
from typing import Any

from .calls import before_empty_cache, call_after, call_before

NAMED_SINCE = (2, 9)  # torch


class PrivatePools:
    """`segments`: of each that was seen the device, how many events there were before, the address, size and pool.

    After `stop` the program is not touched any more: it may be in the middle of its end.
    """

    def __init__(self, torch: Any) -> None:
        self.segments: list[list[Any]] = []
        self._torch = torch
        self._process = os.getpid()
        self._grown = False
        self._stopped = False
        if tuple(int(part) for part in str(torch.__version__).split(".")[:2]) < NAMED_SINCE:
            self._watch()

    def stop(self) -> None:
        self._stopped = True

    def _watch(self) -> None:
        native, cuda = self._torch._C, self._torch.cuda
        call_after(cuda.CUDAGraph, "capture_end", self._grow)
        for module in (native, cuda.memory):  # which imports some by name
            for name in [name for name in vars(module) if name.startswith("_cuda_endAllocate")]:
                call_after(module, name, self._grow)
        before_empty_cache(self._torch, self._look)
        call_before(cuda.CUDAGraph, "reset", self._look)
        pool = cuda.MemPool
        pool.__del__ = lambda _: self._look()  # it gives back when it goes

    def _grow(self) -> None:
        self._grown = True

    def _look(self) -> None:
        if self._stopped or not self._grown or os.getpid() != self._process:
            return
        self._grown = False
        snapshot = self._torch.cuda.memory._snapshot()
        for segment in snapshot["segments"]:
            pool = tuple(segment["segment_pool_id"])
            if pool != (0, 0):
                device = segment["device"]
                before = len(snapshot["device_traces"][device])
                self.segments.append([device, before, segment["address"], segment["total_size"], pool])
