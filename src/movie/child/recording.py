"""Records what a program asks of torch's allocator, from its first use of the card to its end, however it ends."""

from __future__ import annotations

import atexit
import functools
import gc
import inspect
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from . import marks
from .after_import import after_import
from .calls import call_before
from .outcome import Folder
from .private_pools import PrivatePools

OLDEST = (2, 6)  # torch
_ASKED_TO_END = (signal.SIGTERM, signal.SIGHUP)
_KEEP_HISTORY = ("native", "movie")  # allocators


def arrange(folder: str) -> None:
    """Recording begins when the program initialises CUDA, if it ever does."""

    def record(torch: Any) -> None:
        _Recording(torch, Folder(folder))

    after_import("torch", record)


class _Recording:
    def __init__(self, torch: Any, folder: Folder) -> None:
        self._torch = torch
        self._folder = folder
        self._process = os.getpid()
        self._finished = False
        self._begun = False
        self._history = os.environ.get("MOVIE_CAPTURE_HISTORY", "1") != "0"
        self._peaks: dict[int, int] = {}
        self._counts: dict[tuple[int, str], int] = {}
        self._check()
        self._begin_history = self._watch_history() if self._history else None
        self._private_pools: PrivatePools | None = None
        torch.cuda._lazy_call(self._begin)

    def _check(self) -> None:
        """Stops the program if its torch cannot run on a card, or is too old."""
        version = str(self._torch.__version__)
        numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
        if self._torch.version.cuda is None:
            self._folder.stop(
                f"torch {version} in {sys.prefix} is no CUDA build: install one (pip install torch, from PyPI on Linux)"
            )
        if numbers < OLDEST:
            self._folder.stop(f"torch {version} in {sys.prefix} is too old: MOVie works with 2.6 and later")

    def _begin(self) -> None:
        """On the first use of the card."""
        if self._begun or os.getpid() != self._process:
            return
        self._begun = True
        allocator = self._torch.cuda.memory.get_allocator_backend()
        if allocator not in _KEEP_HISTORY:
            self._folder.stop(
                f"the program uses the allocator {allocator!r}, which keeps no history: leave it out "
                "(PYTORCH_CUDA_ALLOC_CONF=backend:..., change_current_allocator)"
            )
        if self._begin_history is not None:
            self._begin_history()
            steps = int(os.environ.get("MOVIE_CAPTURE_STEPS", "0"))
            marks.arrange(self._torch, steps, self._end_after_steps)
            self._private_pools = PrivatePools(self._torch)
        self._keep_peaks()
        atexit.register(self._finish)
        self._finish_before_hard_exit()
        self._finish_before_signals()

    def _watch_history(self) -> Callable[[], None]:
        """A function that begins to record, in full, also if the program starts and stops a recording of its own."""
        memory = self._torch.cuda.memory
        record = memory._record_memory_history
        try:
            signature = inspect.signature(memory._record_memory_history_impl)
        except AttributeError:
            signature = inspect.signature(record)
        ours = {
            "enabled": "all",
            "max_entries": sys.maxsize,
            "clear_history": False,
            "global_record_annotations": True,
            "skip_actions": None,
            "record_cuda": True,
        }
        ours = {name: value for name, value in ours.items() if name in signature.parameters}
        nothing_else = {"context": None, "stacks": "python"}
        chosen: dict[str, Any] = dict(nothing_else)  # by the program: which stacks it wants

        @functools.wraps(record)
        def instead(*args: Any, **kwargs: Any) -> None:
            nonlocal chosen
            try:
                chosen = dict(signature.bind(*args, **kwargs).arguments)
            except TypeError:  # the interface of before torch 2.1, which older scripts may still use
                chosen = {}
            if chosen.get("enabled", "all") in (None, False):
                chosen = dict(nothing_else)
            begin()

        def begin() -> None:
            record(**{**chosen, **ours})

        memory._record_memory_history = instead
        return begin

    def _keep_peaks(self) -> None:
        """Peaks and counts are kept, also if the program resets them."""
        native = self._torch._C
        call_before(native, "_cuda_resetPeakMemoryStats", self._look_at_peaks)
        call_before(native, "_cuda_resetAccumulatedMemoryStats", self._add_counts)

    def _look_at_peaks(self) -> None:
        cuda = self._torch.cuda
        for device in range(cuda.device_count()):
            peak = cuda.memory_stats(device).get("reserved_bytes.all.peak", 0)
            self._peaks[device] = max(self._peaks.get(device, 0), peak)

    def _add_counts(self) -> None:
        cuda = self._torch.cuda
        for device in range(cuda.device_count()):
            stats = cuda.memory_stats(device)
            for name in ("num_alloc_retries", "num_ooms"):
                self._counts[device, name] = self._counts.get((device, name), 0) + stats.get(name, 0)

    def _finish_before_hard_exit(self) -> None:
        hard_exit = os._exit

        @functools.wraps(hard_exit)
        def finish_and_exit(status: int) -> None:
            self._finish()
            hard_exit(status)

        os._exit = finish_and_exit  # type: ignore[assignment]

    def _finish_before_signals(self) -> None:
        """A scheduler, or whoever else, asks the program to end: what was recorded until then is kept.

        Only where the program leaves the signal to the system, which would end it on the spot; and so it does processes
        that the program forks, which may be busy in code that no handler of Python's interrupts.
        """
        if threading.current_thread() is not threading.main_thread():
            return

        def finish_and_end(number: int, _frame: object) -> None:
            self._finish()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

        def leave() -> None:
            for number in _ASKED_TO_END:
                if signal.getsignal(number) is finish_and_end:
                    signal.signal(number, signal.SIG_DFL)

        for number in _ASKED_TO_END:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, finish_and_end)
        os.register_at_fork(after_in_child=leave)

    def _end_after_steps(self) -> None:
        self._finish(steps_reached=True)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    def _finish(self, steps_reached: bool = False) -> None:
        """Writes what was recorded. Once, and not in processes that the program forked."""
        if self._finished or os.getpid() != self._process:
            return
        self._finished = True
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, *_ASKED_TO_END):  # an impatient user gets a whole file or none
                signal.signal(number, signal.SIG_IGN)
        if self._private_pools is not None:
            self._private_pools.stop()
        gc.disable()  # millions of new dicts without a cycle among them
        snapshot = self._torch.cuda.memory._snapshot()
        self._folder.write_facts({**self._facts(snapshot), "steps_reached": steps_reached})
        if self._history and (snapshot["segments"] or any(snapshot["device_traces"])):
            if self._private_pools is not None:
                snapshot["private_segments"] = self._private_pools.segments
            self._folder.write_snapshot(snapshot)

    def _allocator(self, snapshot: dict[str, Any]) -> str:
        """What the program really ran with, whatever it was asked to: native, expandable or movie."""
        backend = str(self._torch.cuda.memory.get_allocator_backend())
        if backend != "native":
            return backend
        return "expandable" if snapshot["allocator_settings"].get("expandable_segments") else "native"

    def _facts(self, snapshot: dict[str, Any]) -> dict[str, Any]:
        torch = self._torch
        self._look_at_peaks()
        self._add_counts()
        devices = []
        for device in range(torch.cuda.device_count()):
            properties = torch.cuda.get_device_properties(device)
            devices.append(
                {
                    "name": properties.name,
                    "memory": properties.total_memory,
                    "capability": f"{properties.major}.{properties.minor}",
                    "multiprocessors": properties.multi_processor_count,
                    "peak_reserved": self._peaks.get(device, 0),
                    "retries": self._counts.get((device, "num_alloc_retries"), 0),
                    "ooms": self._counts.get((device, "num_ooms"), 0),
                }
            )
        return {
            "torch": str(torch.__version__),
            "cuda": str(torch.version.cuda),
            "python": ".".join(map(str, sys.version_info[:3])),
            "rank": os.environ.get("RANK", ""),
            "world_size": os.environ.get("WORLD_SIZE", ""),
            "allocator": self._allocator(snapshot),
            "devices": devices,
            "steps": marks.steps_done(),
        }
