"""Does driver work end where each iteration asks for the same? Calls for memory in each iteration of a training run.

    python -m movie.evaluate.steady [PATH...]

prints, for each trace, allocator and lag, the driver calls that obtain, return, map or unmap memory in each iteration,
on an ample card. An iteration ends with the optimizer's step. Without a PATH: the recordings of MOVIE_DATA with fixed
shapes, whose iterations are all alike from the fourth on. Exits with 1 if there are calls in an iteration after the
third that asks for the same as the one before it, 2 for bad input.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace as changed
from pathlib import Path

import numpy as np

from movie.errors import InputError
from movie.evaluate.recorded import data_folder, files_in, in_parallel, recording_files
from movie.evaluate.replay import replay
from movie.trace.model import COLUMNS, Action, Trace

ALLOCATORS = ("movie", "movie-lean")
LAGS = (0, 1000)
FIXED_SHAPES = ("hf_opt1.3b_N_fix", "ds_opt1.3b_LR_w4", "ds_opt13b_LR_w4", "ds_vicuna13b_R_w4")
MEMORY_CALLS = ("reserve", "free", "create", "release", "map", "unmap", "set_access", "malloc", "mfree")
_STEPS = ("step", "Optimizer.step")  # the mark of `movie capture`, which has torch's own annotation beside it


def iteration_ends(trace: Trace) -> list[int]:
    """The rows at which iterations end: marks of the optimizer's step, the last of those close together."""
    marks = np.flatnonzero(trace.action == Action.MARK)
    steps = marks[:0]
    for step in _STEPS:
        named = [index for index, phase in enumerate(trace.phases) if phase.startswith(step)]
        steps = marks[np.isin(trace.phase[marks], named)]
        if len(steps):
            break
    apart = np.diff(steps, append=2 * len(trace)) > len(trace) // 100
    return [int(row) for row in steps[apart]]


def alike_from(trace: Trace, ends: Sequence[int]) -> int:
    """The first iteration (from 0) which, like all after it, asks for the same as the one before; len(ends): none."""
    windows = [_requests(trace, begin, end) for begin, end in zip([0, *ends], ends, strict=False)]
    first = len(windows)
    while first > 1 and np.array_equal(windows[first - 1], windows[first - 2]):
        first -= 1
    return first


def _requests(trace: Trace, begin: int, end: int) -> np.ndarray:
    """Rows (action, bytes, stream, pool) of what is allocated and freed."""
    rows = np.flatnonzero(trace.action[begin:end] <= Action.FREE_COMPLETED) + begin
    return np.stack([column[rows].astype(np.int64) for column in (trace.action, trace.bytes, trace.stream, trace.pool)])


def memory_calls(trace: Trace, allocator: str, lag: int | None, ends: Sequence[int]) -> list[int]:
    """Driver calls for memory in each iteration on an ample card; the first includes what the start state took."""
    before = 0
    calls = []
    for end in ends:
        beginning = changed(trace, **{name: getattr(trace, name)[:end] for name in COLUMNS})
        driver = replay(beginning, allocator, lag=lag, validate=False).driver
        so_far = sum(driver[call] for call in MEMORY_CALLS)
        calls.append(so_far - before)
        before = so_far
    return calls


def _lines(path: Path) -> tuple[list[str], bool]:
    from movie.trace import read_trace  # noqa: PLC0415  -- readers are slow to import

    lines = []
    steady = True
    for trace in read_trace(path):
        ends = iteration_ends(trace)
        first = alike_from(trace, ends)
        if len(ends) - first < 2:
            raise InputError(f"{path}: no three iterations in a row ask for the same")
        for allocator in ALLOCATORS:
            for lag in LAGS:
                calls = memory_calls(trace, allocator, lag, ends)
                moving = any(calls[max(first, 3) :])
                steady &= not moving
                figures = " ".join(f"{count:>7,}" for count in calls)
                lines.append(f"{path.name:32} {allocator:10} {lag:>5}  {'MOVES ' if moving else 'steady'} {figures}")
    return lines, steady


def main(arguments: Sequence[str]) -> int:
    """Prints a line for each run; 0 if all driver work ends, 1 if not, 2 for bad input."""
    try:
        if arguments:
            paths = list(files_in(arguments))
        else:
            paths = [path for path in recording_files(data_folder()) if path.name.startswith(FIXED_SHAPES)]
        steady = True
        for lines, one in in_parallel(_lines, paths):
            print(*lines, sep="\n", flush=True)
            steady &= one
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    return 0 if steady else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
