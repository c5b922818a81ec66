"""Marks in a recording: where empty_cache was called, and where the phases of a training step begin.

A mark is an annotation (record_function) with a time in microseconds, as the allocator's events have. To stand between
two events for certain, it keeps some microseconds from both.
"""

from __future__ import annotations

import functools
import importlib
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from . import names
from .calls import before_empty_cache

_APART = 3_000  # nanoseconds: whatever the clocks' offset within a microsecond is, the times differ

_steps = 0


def steps_done() -> int:
    """How many optimizer steps have been seen, those after one backward counted as one."""
    return _steps


def arrange(torch: Any, most_steps: int, end: Callable[[], None]) -> None:
    """Marks from now on. After `most_steps` steps (0: never) `end` is called."""
    mark = _marker(torch)
    before_empty_cache(torch, lambda: mark(names.EMPTY_CACHE))
    phases = _Phases(torch, mark, most_steps, end)
    optimizer = importlib.import_module("torch.optim.optimizer")
    optimizer.register_optimizer_step_pre_hook(phases.before_step)
    optimizer.register_optimizer_step_post_hook(phases.after_step)
    phases.watch_backward()


def _marker(torch: Any) -> Callable[[str], None]:
    record_function = torch.autograd.profiler.record_function
    process = os.getpid()

    def mark(name: str) -> None:
        if os.getpid() != process:
            return
        _wait()
        with record_function(name):
            pass
        _wait()

    # Not part of what torch.compile compiles.
    return torch._disable_dynamo(mark) if hasattr(torch, "_disable_dynamo") else mark


def _wait() -> None:
    end = time.perf_counter_ns() + _APART
    while time.perf_counter_ns() < end:
        pass


class _Phases:
    """Follows the program through backward and optimizer step."""

    def __init__(self, torch: Any, mark: Callable[[str], None], most_steps: int, end: Callable[[], None]) -> None:
        self._torch = torch
        self._mark = mark
        self._most_steps = most_steps
        self._end = end
        self._inside = threading.local()  # recomputation calls backward inside of backward
        self._backwards = 0  # since the last step

    def watch_backward(self) -> None:
        autograd = self._torch.autograd
        backward = autograd.backward

        @functools.wraps(backward)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if getattr(self._inside, "backward", False):
                return backward(*args, **kwargs)
            self._inside.backward = True
            self._end_if_enough()
            self._backwards += 1
            self._mark(names.BACKWARD)
            try:
                return backward(*args, **kwargs)
            finally:
                self._inside.backward = False
                self._mark(names.FORWARD)

        autograd.backward = watched

    def before_step(self, *args: Any) -> None:
        """An optimizer hook. Some frameworks take a step in many small ones: they count as one."""
        global _steps  # noqa: PLW0603
        if self._backwards:
            _steps += 1
        self._backwards = 0
        self._mark(names.OPTIMIZER)

    def after_step(self, *args: Any) -> None:
        self._mark(names.STEP)

    def _end_if_enough(self) -> None:
        """Whether a step was the last of several small ones is known when the next backward begins."""
        if self._most_steps and _steps >= self._most_steps:
            self._end()
