"""How fast the replay loop and the allocators are: events a second, and how the cost of one grows with their number.

    python benchmarks/speed.py [RECORDING]

The recording (default: rlhf_torch_R_b24_fix of MOVIE_DATA) is played twice in a row, ids renamed, while 100,000 small
blocks live throughout; the validator is off. Times are processor time, the best of three runs.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from movie.evaluate.columns import columns_of
from movie.evaluate.replay import replay
from movie.trace import read_trace
from movie.trace.model import Action, StartBlocks, Trace

LIVE_BLOCKS = 100_000
ALLOCATORS = ("native", "movie", "movie-lean")


def events_only(trace: Trace) -> Trace:
    """The alloc and free rows of a trace that starts empty."""
    keep = np.isin(trace.action, (Action.ALLOC, Action.FREE_REQUESTED, Action.FREE_COMPLETED))
    return _rows(trace, keep)


def _rows(trace: Trace, keep: np.ndarray) -> Trace:
    return replace(
        trace,
        **{
            name: getattr(trace, name)[keep]
            for name in ("action", "id", "bytes", "stream", "pool", "address", "time_us", "phase")
        },
    )


def twice_with_live_blocks(trace: Trace, blocks: int) -> Trace:
    """The trace played twice behind a start state of small live blocks."""
    sizes = np.random.default_rng(1).integers(1, 16 * 1024, blocks)
    zeros = np.zeros(blocks, dtype=np.int64)
    start = StartBlocks(sizes, sizes, np.zeros(blocks, np.uint64), zeros, zeros, np.zeros(blocks, np.bool_))
    once = int(trace.id.max()) + 1
    freed = np.unique(trace.id[trace.action == Action.FREE_REQUESTED])
    left = np.setdiff1d(np.arange(once), freed)
    owner = {int(i): row for row, i in enumerate(trace.id) if trace.action[row] == Action.ALLOC}
    rows = np.array([owner[int(i)] for i in left], dtype=np.int64)
    # What the first round leaves alive is freed before the second begins.
    frees = np.repeat(rows, 2)
    action = np.tile(np.array([Action.FREE_REQUESTED, Action.FREE_COMPLETED], np.uint8), len(rows))
    columns = {}
    for name in ("id", "bytes", "stream", "pool", "address", "time_us", "phase"):
        column = getattr(trace, name)
        second = column + once if name == "id" else column
        columns[name] = np.concatenate([column, column[frees], second])
    columns["id"] = columns["id"] + blocks
    columns["action"] = np.concatenate([trace.action, action, trace.action])
    return replace(trace, start=start, **columns)


def first_events(trace: Trace, events: int) -> Trace:
    ticks = np.cumsum(np.isin(trace.action, (Action.ALLOC, Action.FREE_COMPLETED)))
    return _rows(trace, ticks <= events)


def best_of_three(trace: Trace, allocator: str) -> float:
    """Nanoseconds an event (alloc or free)."""
    columns = columns_of(trace)
    return min(replay(trace, allocator, validate=False, columns=columns).host_ns_per_event for _ in range(3))


def main() -> None:
    data = Path(os.environ.get("MOVIE_DATA", "../shared/data"))
    path = sys.argv[1] if len(sys.argv) > 1 else data / "recordings/rlhf_torch_R_b24_fix.pickle.gz"
    trace = events_only(read_trace(path)[0])
    double = twice_with_live_blocks(trace, LIVE_BLOCKS)
    print(f"{path}: twice, {len(double.action):,} rows, {LIVE_BLOCKS:,} small blocks live throughout")
    for allocator in ALLOCATORS:
        whole = best_of_three(double, allocator)
        growth = "  ".join(
            f"{events:,} events: {best_of_three(first_events(double, events), allocator):.0f} ns"
            for events in (10_000, 100_000, 1_000_000)
        )
        print(f"{allocator:12} {1e3 / whole:6.2f} million events/s ({whole:.0f} ns an event)   {growth}")


if __name__ == "__main__":
    main()
