"""Traces from lifetimes: when each block begins, when it ends (and is not alive any more), and its size."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from movie.trace.log import Log, trace_of
from movie.trace.model import Action, Trace
from movie.trace.source import Source


def trace_of_lifetimes(
    source: Source, lower: Sequence[int], upper: Sequence[int], size: Sequence[int], lines: Sequence[int], **facts: Any
) -> Trace:
    """The trace of blocks alive from `lower` to before `upper`, in any unit of time; `lines` says where each stood.

    Of one moment frees come before allocations, and either in the order of the file. All on one stream.
    """
    blocks = len(size)
    times = np.array([*lower, *upper], dtype=np.int64)
    allocs = np.arange(2 * blocks) < blocks
    order = np.lexsort((np.arange(2 * blocks), allocs, times))
    block = np.tile(np.arange(blocks), 2)[order]
    log = Log(
        action=np.where(allocs, Action.ALLOC, Action.FREE_REQUESTED).astype(np.uint8)[order],
        key=block,
        bytes=np.array(size, dtype=np.int64)[block],
        stream=np.zeros(2 * blocks, dtype=np.int64),
        address=np.zeros(2 * blocks, dtype=np.uint64),
        time_us=np.zeros(2 * blocks, dtype=np.int64),
        phase=np.full(2 * blocks, -1, dtype=np.int32),
    )
    return trace_of(source, log, lambda entry: f"line {lines[block[entry]]}", **facts)
