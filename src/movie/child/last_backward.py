"""Lets autograd's threads come to rest before the interpreter ends.

`backward()` returns when the gradients are there, which is before the thread that computed them lets go of its task and
of a Python object in it (the context, `torch.autograd.graph._engine_run_backward`). If the interpreter has ended by
then, the process aborts: a program whose last line is a backward pass fails now and then. It is a race of torch's own,
which a real card hides as long as its work keeps the program waiting; a phantom's work is done at once.
"""

from __future__ import annotations

import atexit
import os
import time
from contextlib import suppress
from typing import Any

from .after_import import after_import

_THREADS = "pt_autograd"
_PAUSE = 0.001  # seconds, in which the threads may have the interpreter's lock
_LOOKS = 3  # at rest, one after the other
_PATIENCE = 2.0  # seconds


def arrange() -> None:
    after_import("torch", _wait_at_exit)


def _wait_at_exit(torch: Any) -> None:
    atexit.register(wait_for_rest)


def wait_for_rest() -> None:
    """Returns when no thread of autograd runs, or patience ends."""
    end = time.monotonic() + _PATIENCE
    quiet = 0
    while quiet < _LOOKS and time.monotonic() < end:
        states = _states()
        if not states:
            return
        quiet = quiet + 1 if all(state == "S" for state in states) else 0
        time.sleep(_PAUSE)


def _states() -> list[str]:
    """Of autograd's threads, as the kernel has them: R for one that runs or would like to, S for one that sleeps."""
    states = []
    for task in os.listdir("/proc/self/task"):
        with suppress(OSError), open(f"/proc/self/task/{task}/stat", encoding="utf-8", errors="replace") as file:
            name, _, rest = file.read().partition("(")[2].rpartition(")")
            if name.startswith(_THREADS):
                states.append(rest.split()[0])
    return states
