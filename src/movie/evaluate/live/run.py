"""Runs a module as a program on a phantom card, and writes what its memory did, as JSON.

    python -m movie.evaluate.live.run FILE MODULE [ARGUMENT...]

A step ends with the optimizer's step. The figures are the phantom's, but for the peaks and retries that PyTorch counts.
With MOVIE_LIVE_SNAPSHOT the history is recorded too, and the snapshot written to that file.
"""

import ctypes
import json
import os
import runpy
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import movie
import movie._core

_MEMORY_CALLS = ("create", "release", "map", "unmap", "set_access", "reserve", "free", "malloc", "mfree")


def phantom_counters() -> Any:
    """What the phantom counted so far: `movie_phantom_counters()` of its library."""
    count = ctypes.CDLL(None).movie_phantom_counters
    count.restype = ctypes.c_size_t
    size = count(None, ctypes.c_size_t(0)) + 1
    text = ctypes.create_string_buffer(size)
    count(text, ctypes.c_size_t(size))
    return json.loads(text.value)


def _memory_calls() -> int:
    driver = phantom_counters()["devices"][0]["driver"]
    return sum(driver[call] for call in _MEMORY_CALLS)


def main() -> None:
    file, module = Path(sys.argv[1]), sys.argv[2]
    sys.argv = sys.argv[2:]
    import torch  # noqa: PLC0415 - what is to happen after its import is arranged by now
    from torch.optim.optimizer import register_optimizer_step_post_hook  # noqa: PLC0415

    calls: list[int] = []
    times: list[float] = []
    processor: list[float] = []

    def step_ends(*_: object) -> None:
        calls.append(_memory_calls())
        times.append(time.perf_counter())
        processor.append(time.process_time())

    register_optimizer_step_post_hook(step_ends)
    snapshot = os.environ.get("MOVIE_LIVE_SNAPSHOT")
    if snapshot:
        torch.cuda.memory._record_memory_history(context=None, max_entries=sys.maxsize)
    completed = True
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except torch.OutOfMemoryError:
        completed = False
    if snapshot:
        torch.cuda.memory._dump_snapshot(snapshot)
    stats = torch.cuda.memory_stats()
    counters = phantom_counters()
    device = counters["devices"][0]
    document = {
        "completed": completed,
        "requested": stats["requested_bytes.all.peak"],
        "active": stats["active_bytes.all.peak"],
        "reserved": stats["reserved_bytes.all.peak"],
        "reserved_by_the_card": device["peak"],
        "retries": stats["num_alloc_retries"],
        "violations": counters["violations"],
        "driver": device["driver"],
        "views": movie._core.torch.views(0),
        "waits": movie._core.torch.account(0).count("stream_wait"),  # that MOVie asked for, not the program
        "driver_seconds": device["driver_seconds"],
        "calls_by_step": [after - before for before, after in zip([0, *calls], calls, strict=False)],
        "step_seconds": [after - before for before, after in pairwise(times)],
        "step_processor_seconds": [after - before for before, after in pairwise(processor)],  # of all threads
    }
    file.write_text(json.dumps(document), encoding="utf-8")


if __name__ == "__main__":
    main()
