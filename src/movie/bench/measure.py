"""One cell measured, in a process of its own: two captures, and replays of the first.

    python -m movie.bench.measure FOLDER FIGURES CELL [record]

where CELL is the cell as JSON (movie.bench.cells), FOLDER has its captures and FIGURES is the file that is written;
with `record` the captures alone are made.
What was done is not done again. Exits with 1, and the
reason as the last line of standard error, where a training run does not come to its end.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from movie import _core
from movie.allocators import AllocatorSpec
from movie.bench.cells import Cell
from movie.bench.figures import ALLOCATORS, OURS, RIVALS, RealRun, Replayed, rows_of
from movie.bench.iteration import Iteration
from movie.bench.work import Place
from movie.capture.assemble import traces_of
from movie.capture.program import ALLOCATORS as REAL
from movie.capture.program import Watching, watched, why_nothing
from movie.errors import InputError
from movie.evaluate.columns import columns_of
from movie.evaluate.comparison import Conditions, compare
from movie.evaluate.fit import FACTORS, Point, card_of, fit
from movie.evaluate.replay import ReplayResult
from movie.phantom.cards import DEFAULT, find_card
from movie.phantom.environment import phantom_environment
from movie.phantom.process import Output
from movie.phantom.settings import PhantomSettings
from movie.trace import Trace, read_trace, write_trace
from movie.trace.output import whole_file

AMPLE = 1 << 40  # bytes: more than any cell asks for, so that no run fails or retries


def measure(place: Place) -> None:
    """Does what is missing, and leaves the figures in the cell's folder. Raises InputError for a run that fails."""
    record(place)
    traces = [_only_trace(place.capture(allocator)) for allocator in REAL]
    real = {allocator: _real_run(trace) for allocator, trace in zip(REAL, traces, strict=True)}
    replays, streams = _replays(place.capture(REAL[0]))
    operations = operations_of(place)
    rows_computing = replays[REAL[0]].ample.main_rows
    iteration = None if operations is None else Iteration(operations, place.cell.iterations, rows_computing)
    rows = rows_of(place.cell, real, replays, iteration, streams)
    _write(place.figures, json.dumps({"rows": rows}))


def record(place: Place, allocators: Sequence[str] = REAL) -> None:
    """The training runs that have not been recorded yet, and the count of their operations."""
    place.folder.mkdir(parents=True, exist_ok=True)
    for allocator in allocators:
        if not place.capture(allocator).exists():
            _capture(place, allocator)
    operations_of(place)


def _capture(place: Place, allocator: str) -> None:
    watching = Watching(_phantom(), allocator, output=Output.TO_STDERR)
    with watched(place.cell.command, watching) as ended:
        if not ended.recorded:
            raise InputError(why_nothing(ended))
        if ended.failed:
            raise InputError(f"the training run under {allocator} ended with exit code {ended.exit_code}")
        traces = traces_of(ended.recorded[0], ended, watching)
    if len(traces) != 1 or not traces[0].complete:
        raise InputError("; ".join(traces[0].warnings) if traces else "the training run used no memory of its card")
    write_trace(traces[0], place.capture(allocator))


def _phantom() -> PhantomSettings:
    return PhantomSettings(find_card(DEFAULT), memory=AMPLE, quiet=True)


def _only_trace(path: Path) -> Trace:
    (trace,) = read_trace(path)
    return trace


def _real_run(trace: Trace) -> RealRun:
    return RealRun(
        peak_requested=_core.floor_of(columns_of(trace)).requested,
        peak_reserved=int(trace.header["peak reserved"]),
        retries=int(trace.header["retries"]),
    )


def _replays(path: Path) -> tuple[dict[str, Replayed], int]:
    """Each allocator on cards of all sizes, and how many streams there are.

    What runs on ample cards and on the smallest is watched by the validator, which takes ten times as long as a replay.
    """
    specs = [AllocatorSpec(name) for name in ALLOCATORS]
    (watched_runs,) = compare(path, specs, Conditions()).devices
    (timed_runs,) = compare(path, specs, Conditions(validate=False)).devices
    (fits,) = fit(path, specs, Conditions()).devices
    curves = {factor: _on_card(path, card_of(factor, fits.facts.peak_requested), ALLOCATORS) for factor in FACTORS}
    scarce = {
        found.allocator: _on_card(path, found.smallest_card, OURS)
        for found in fits.allocators
        if found.allocator in RIVALS and found.smallest_card is not None
    }
    replays = {}
    for watched_run, timed, found in zip(watched_runs.runs, timed_runs.runs, fits.allocators, strict=True):
        name = found.allocator
        replays[name] = Replayed(
            watched_run.result,
            found,
            timed.result.host_ns_per_event,
            {rival: results[name] for rival, results in scarce.items() if name in results},
            [Point(factor, card_of(factor, fits.facts.peak_requested), curves[factor][name]) for factor in FACTORS],
        )
    return replays, watched_runs.facts.streams


def _on_card(path: Path, card: int, allocators: Sequence[str]) -> dict[str, ReplayResult]:
    specs = [AllocatorSpec(name) for name in allocators]
    (found,) = compare(path, specs, Conditions(memory=card, validate=False)).devices
    return {name: run.result for name, run in zip(allocators, found.runs, strict=True)}


def operations_of(place: Place) -> float | None:
    """Of an iteration; None where the workload's are not counted."""
    command = place.cell.counting
    if command is None:
        return None
    if not place.operations.exists():
        with phantom_environment(_phantom()) as environment:
            counted = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
        if counted.returncode:
            raise InputError(f"counting its operations failed with exit code {counted.returncode}")
        _write(place.operations, str(int(counted.stdout.splitlines()[-1])))
    return float(place.operations.read_text(encoding="utf-8"))


def _write(path: Path, text: str) -> None:
    with whole_file(path) as file:
        file.write(text.encode())


def main(arguments: Sequence[str]) -> int:
    """0 when the figures are there."""
    folder, figures, cell, *record_only = arguments
    data: dict[str, Any] = json.loads(cell)
    try:
        work = record if record_only else measure
        work(Place(Path(folder), Path(figures), Cell(**data)))
    except InputError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
