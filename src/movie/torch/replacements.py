"""Functions of torch that would ask PyTorch's own allocator ask MOVie.

PyTorch forwards requests to a pluggable allocator, but not the questions about it: under one, its statistics and
snapshots raise. Its Python code looks these functions up in `torch._C` at each call, so they are replaced there.
"""

import dataclasses
from collections.abc import Callable
from types import ModuleType
from typing import Any

from movie import _core
from movie.torch.config import Config
from movie.torch.recording import recording
from movie.torch.snapshot import memory_snapshot
from movie.torch.statistics import device_statistics, nested_statistics

BACKEND = "movie"


def replace_reports(torch: ModuleType, config: Config) -> None:
    """Puts the replacements into `torch._C`, those that this version of torch has."""
    reports = _Reports(torch, config)
    for name, function in reports.replacements().items():
        if hasattr(torch._C, name):
            setattr(torch._C, name, function)


class _Reports:
    def __init__(self, torch: ModuleType, config: Config) -> None:
        self._torch = torch
        self._config = config

    def replacements(self) -> dict[str, Callable[..., Any]]:
        return {
            "_cuda_getAllocatorBackend": lambda: BACKEND,
            "_cuda_memoryStats": self._checked(nested_statistics),
            "_cuda_resetPeakMemoryStats": self._checked(_core.torch.reset_peaks),
            "_cuda_resetAccumulatedMemoryStats": self._checked(_core.torch.reset_accumulated),
            "_cuda_getMemoryFraction": self._checked(_core.torch.fraction),
            "_cuda_memorySnapshot": self._snapshot,
            "_cuda_record_memory_history": recording.start,
            "_cuda_record_memory_history_legacy": recording.start_legacy,
            "_cuda_isHistoryEnabled": lambda: recording.enabled is not None,
            "_cuda_attach_out_of_memory_observer": _core.torch.observe_out_of_memory,
            "_cuda_cudaCachingAllocator_enable": _switch_caching,
            "_accelerator_isAllocatorInitialized": self._torch.cuda.is_initialized,
            "_accelerator_emptyCache": self._torch._C._cuda_emptyCache,
            "_accelerator_getDeviceStats": self._checked(device_statistics),
            "_accelerator_resetPeakStats": self._checked(_core.torch.reset_peaks),
            "_accelerator_resetAccumulatedStats": self._checked(_core.torch.reset_accumulated),
        }

    def _checked(self, function: Callable[[int], Any]) -> Callable[[int], Any]:
        def of_device(device: int) -> Any:
            count = self._torch.cuda.device_count()
            if not 0 <= device < count:
                raise RuntimeError(f"Invalid device argument {device}: there are {count} devices")
            return function(device)

        return of_device

    def _snapshot(self, wanted: tuple[Any, ...] | None = None) -> dict[str, Any]:
        """`wanted`: (pool's first, pool's second[, include traces])."""
        pool, include_traces = (0, 0), True
        if wanted is not None:
            pool = (wanted[0], wanted[1])
            include_traces = bool(wanted[2]) if len(wanted) > 2 else True
        settings = {key: value for key, value in dataclasses.asdict(self._config).items() if value not in (None, {})}
        return memory_snapshot(self._torch.cuda.device_count(), pool, include_traces, {"movie": settings})


def _switch_caching(on: bool) -> None:
    if not on:
        raise RuntimeError("MOVie always keeps memory for later requests; give it back with torch.cuda.empty_cache()")
