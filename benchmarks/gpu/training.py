"""A training under one allocator: time of an iteration, what was reserved, the least of the card that it needs."""

import gc
import os
import time
from statistics import median
from typing import Any

import torch
from workloads import SCALES, WORKLOADS

# Of what is requested at most; the first is where a run begins to be tight under PyTorch's own allocator.
FACTORS = (1.6, 1.3, 1.15, 1.08, 1.04, 1.02)


def requests() -> list[list[int]]:
    """What was asked for, in order: bytes, negative where they were freed, and the number of the stream."""
    streams: dict[int, int] = {}
    return [
        [event["size"] * (1 if event["action"] == "alloc" else -1), streams.setdefault(event["stream"], len(streams))]
        for event in torch.cuda.memory._snapshot()["device_traces"][0]
        if event["action"] in ("alloc", "free_requested")
    ]


def attempt(fraction: float) -> dict[str, Any]:
    """The whole training, with this share of the card."""
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(fraction)
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()
    torch.manual_seed(0)
    seconds = []
    completed = True
    workload = WORKLOADS[os.environ.get("MOVIE_GPU_WORKLOAD", "lengths")](SCALES[os.environ["MOVIE_GPU_SCALE"]])
    begin = time.perf_counter()
    try:
        for _ in workload:
            torch.cuda.synchronize()
            seconds.append(time.perf_counter() - begin)
            begin = time.perf_counter()
    except torch.OutOfMemoryError:
        completed = False
    stats = torch.cuda.memory_stats()
    return {
        "completed": completed,
        "iteration_seconds": median(seconds) if seconds else None,
        "requested": stats["requested_bytes.all.peak"],
        "reserved": stats["reserved_bytes.all.peak"],
        "retries": stats["num_alloc_retries"],
    }


def main() -> dict[str, Any]:
    if os.environ.get("MOVIE_GPU_REQUESTS"):
        torch.cuda.init()
        torch.cuda.memory._record_memory_history(context=None, max_entries=10**7)
        return {**attempt(1.0), "requests": requests()}
    found: dict[str, Any] = attempt(1.0)
    total = torch.cuda.mem_get_info()[1]
    smallest = None
    for factor in FACTORS:
        share = {"factor": factor, "fraction": min(found["requested"] * factor / total, 1.0)}
        tried = attempt(share["fraction"])
        if not tried["completed"]:
            break
        smallest = {**share, **tried}
    return {**found, "total": total, "smallest": smallest}
