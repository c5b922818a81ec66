"""What does a nearly full card cost? `movie` on cards a little larger than what a run asks for at its peak.

    python -m movie.evaluate.pressure [--floor SOURCE] [--rivals] [PATH...]

Cards of 1.005, 1.01, 1.02, 1.05, 1.1 and 1.25 x peak requested + 64 MiB, a lag of 1,000 rows, both cost tables. Prints
Markdown: for each trace and card the modelled driver seconds of calls for memory in the last quarter of the run, views
made and edited, waits of streams and of the host, rows stalled in them, and sums; beside them, where its source is at
hand (`../prototypes/placement/pressure.cpp` from the folder of recorded traces, or SOURCE), the same of the floor, a
small program that is not part of this project (see pressure_floor.py). Seconds of events and of waits are left out,
since the floor has none. Where movie takes more than the floor and a millisecond an iteration, the cell is marked.
With --rivals native, expandable and gmlake run too: below the tables stand the cells in which one of them completes and
takes less driver time in the last quarter than movie, events and waits included.

Without a PATH: the recordings of MOVIE_DATA but `graph_step`, whose pools leave no page to spare, and the traces on
which the released GMLake was measured. Exits with 1 if a run does not complete or needs a retry, or if one of the sums
is above the floor's; with 2 for bad input.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from movie import _core
from movie.errors import InputError
from movie.evaluate.columns import columns_of
from movie.evaluate.pressure_floor import FloorRun, compile_floor, floor_rows, floor_source, run_floor
from movie.evaluate.recorded import data_folder, files_in, gmlake_files, in_parallel, iterations_of, recording_files
from movie.evaluate.replay import ReplayResult, replay

MIB = 1 << 20
FACTORS = (1.005, 1.01, 1.02, 1.05, 1.1, 1.25)
MARGIN = 64 * MIB
LAG = 1000
COSTS = ("per-call", "per-page")
LEFT_OUT = ("graph_step",)
RIVALS = ("native", "expandable", "gmlake")
ALLOWED = 1e-3  # seconds an iteration above the floor
# What a record or a wait costs, in seconds, in both cost tables.
EVENT = WAIT = 1e-6


@dataclass(frozen=True)
class Work:
    """What a run cost: modelled driver seconds of calls for memory in the last quarter; counts over the whole run."""

    seconds_last_quarter: float
    views: int
    edits: int
    waits: int
    stalled_rows: int


@dataclass(frozen=True)
class Cell:
    """One trace on one card (bytes) under one cost table. `floor`: None where it was not run or ran out of memory."""

    trace: str
    factor: float
    card: int
    costs: str
    completed: bool
    failure: str
    retries: int
    peak_reserved: int
    seconds_to_first_peak: float
    work: Work
    floor: Work | None = None
    iterations: int | None = None  # of the whole run
    ahead: tuple[str, ...] = ()  # the rivals that complete and take less driver time in the last quarter

    @property
    def above(self) -> bool:
        """Whether it takes more than the floor and a millisecond an iteration."""
        if self.floor is None or self.iterations is None:
            return False
        allowed = ALLOWED * self.iterations / 4
        return self.work.seconds_last_quarter > self.floor.seconds_last_quarter + allowed

    @property
    def kept(self) -> bool:
        """Whether the run completed, and never had to flush or wait in the out-of-memory ladder."""
        return self.completed and self.retries == 0


def card_of(requested: int, factor: float) -> int:
    """Bytes of a card for a run that asks for `requested` bytes at its peak."""
    return int(requested * factor) + MARGIN


def cells_of(
    path: Path,
    *,
    allocator: str = "movie",
    factors: Sequence[float] = FACTORS,
    costs: Sequence[str] = COSTS,
    validate: bool = False,
    floor: Path | None = None,
    rivals: Sequence[str] = (),
) -> list[Cell]:
    """Each card and cost table for one trace. `floor`: the floor's program, to be run beside, as are `rivals`.

    Raises InputError for a file that cannot be read, ValidationError if the allocator breaks an invariant.
    """
    from movie.trace import read_trace  # noqa: PLC0415  -- readers are slow to import

    cells = []
    for trace in read_trace(path):
        columns = columns_of(trace)
        requested = _core.floor_of(columns).requested
        rows = floor_rows(trace) if floor else None
        for factor in factors:
            card = card_of(requested, factor)
            for table in costs:
                result = replay(trace, allocator, memory=card, lag=LAG, costs=table, validate=validate, columns=columns)
                others = [
                    replay(trace, rival, memory=card, lag=LAG, costs=table, validate=False, columns=columns)
                    for rival in rivals
                ]
                beside = None
                if floor is not None and rows is not None:
                    beside = run_floor(floor, rows, card, lag=LAG, per_page=table == "per-page")
                cells.append(
                    Cell(
                        trace=path.name.split(".pickle")[0].split(".bin")[0],
                        factor=factor,
                        card=card,
                        costs=table,
                        completed=result.completed,
                        failure=result.failure,
                        retries=result.retries,
                        peak_reserved=result.peak_reserved,
                        seconds_to_first_peak=result.driver_seconds_to_first_peak,
                        work=_work_of(result),
                        floor=_work_of_floor(beside) if beside and beside.completed else None,
                        iterations=iterations_of(path),
                        ahead=tuple(other.allocator for other in others if _is_ahead(other, result)),
                    )
                )
    return cells


def _work_of(result: ReplayResult) -> Work:
    late = result.driver_last_quarter
    outside = EVENT * late.get("event_record", 0) + WAIT * late.get("stream_wait", 0)
    return Work(
        seconds_last_quarter=result.driver_seconds_last_quarter - outside,
        views=result.views["created"],
        edits=result.views["edited"],
        # One wait of a stream may take several events to express; the floor counts requests that waited alike.
        waits=result.driver["stream_wait"] + result.driver["event_synchronize"] + result.driver["synchronize"],
        stalled_rows=result.stalled_rows,
    )


def _is_ahead(rival: ReplayResult, ours: ReplayResult) -> bool:
    # Sums of many calls differ in their last digits.
    return rival.completed and rival.driver_seconds_last_quarter < ours.driver_seconds_last_quarter - 1e-9


def _work_of_floor(run: FloorRun) -> Work:
    return Work(run.seconds_last_quarter, run.views, run.edits, run.waits, run.stalled_rows)


def total(works: Iterable[Work]) -> Work:
    """The sums."""
    works = list(works)
    return Work(
        sum(work.seconds_last_quarter for work in works),
        sum(work.views for work in works),
        sum(work.edits for work in works),
        sum(work.waits for work in works),
        sum(work.stalled_rows for work in works),
    )


def sums_kept(cells: Iterable[Cell], costs: str) -> bool:
    """Whether all is less than the floor's in sum: seconds; views, edits and waits together; rows stalled."""
    both = [cell for cell in cells if cell.costs == costs and cell.floor]
    ours = total(cell.work for cell in both)
    floor = total(cell.floor for cell in both if cell.floor)
    return (
        ours.seconds_last_quarter <= floor.seconds_last_quarter
        and ours.views + ours.edits + ours.waits <= floor.views + floor.edits + floor.waits
        and ours.stalled_rows <= floor.stalled_rows
    )


def default_files() -> list[Path]:
    """The recordings but LEFT_OUT, and the traces on which GMLake was measured."""
    data = data_folder()
    recordings = [path for path in recording_files(data) if not path.name.startswith(LEFT_OUT)]
    return [*recordings, *gmlake_files(data)]


# --- the table -------------------------------------------------------------------------------------------------------

HEAD = ("trace", "card", "GiB", "retries", "last quarter, s", "views/edits/waits", "stalled rows")
FLOOR_HEAD = ("floor: last quarter, s", "views/edits/waits", "stalled rows")


def markdown(cells: Sequence[Cell]) -> str:
    """The cells of one cost table as a Markdown table, and their sums over each card and over all."""
    head = (*HEAD, *FLOOR_HEAD) if any(cell.floor for cell in cells) else HEAD
    lines = [_row(head), _row(["---", *["---:"] * (len(head) - 1)])]
    for cell in cells:
        outcome = str(cell.retries) if cell.completed else "FAILS"
        figures = [cell.trace, f"{cell.factor:g} x", f"{cell.card / 2**30:.2f}", outcome, *_figures(cell.work)]
        if len(head) > len(HEAD):
            figures += _figures(cell.floor) if cell.floor else ["fails", "", ""]
            figures[4] += " >" if cell.above else ""
        lines.append(_row(figures))
    for name, some in [*_by_factor(cells), ("all", cells)]:
        both = [cell for cell in some if cell.floor] if len(head) > len(HEAD) else list(some)
        retries = sum(cell.retries for cell in both)
        figures = ["**sum**", name, "", str(retries), *_figures(total(cell.work for cell in both))]
        if len(head) > len(HEAD):
            figures += _figures(total(cell.floor for cell in both if cell.floor))
        lines.append(_row(figures))
    return "\n".join(lines)


def _by_factor(cells: Sequence[Cell]) -> list[tuple[str, list[Cell]]]:
    factors = dict.fromkeys(cell.factor for cell in cells)
    return [(f"{factor:g} x", [cell for cell in cells if cell.factor == factor]) for factor in factors]


def _figures(work: Work) -> list[str]:
    return [
        f"{work.seconds_last_quarter:.4f}",
        f"{work.views:,}/{work.edits:,}/{work.waits:,}",
        f"{work.stalled_rows:,}",
    ]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str]) -> int:
    """Prints the tables; 0 if every run completed without a retry, 1 if not, 2 for bad input."""
    parser = argparse.ArgumentParser(
        prog="python -m movie.evaluate.pressure", description="`movie` on cards that are nearly full."
    )
    parser.add_argument("paths", nargs="*", metavar="PATH")
    parser.add_argument("--floor", type=Path, metavar="SOURCE", help="the source of the floor's program")
    parser.add_argument("--rivals", action="store_true", help="run native, expandable and gmlake beside")
    chosen = parser.parse_args(arguments)
    try:
        paths = list(files_in(chosen.paths)) if chosen.paths else default_files()
        with tempfile.TemporaryDirectory() as folder:
            source = chosen.floor or (None if chosen.paths else floor_source(data_folder()))
            program = compile_floor(source, Path(folder)) if source else None
            run = partial(cells_of, floor=program, rivals=RIVALS if chosen.rivals else ())
            everything = [cell for cells in in_parallel(run, paths) for cell in cells]
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    for costs in COSTS:
        cells = [cell for cell in everything if cell.costs == costs]
        print(f"### `movie`, lag {LAG:,}, costs {costs}\n\n{markdown(cells)}\n")
    above = [cell for cell in everything if cell.above]
    if floor_seen := any(cell.floor for cell in everything):
        print(f"{len(above)} cells above the floor by more than {1000 * ALLOWED:g} ms an iteration")
    if chosen.rivals:
        behind = [cell for cell in everything if cell.ahead]
        print(f"{len(behind)} cells in which a rival that completes takes less driver time in the last quarter")
        for cell in behind:
            print(f"- {cell.trace} at {cell.factor:g} x, {cell.costs}: {', '.join(cell.ahead)}")
    more = [costs for costs in COSTS if floor_seen and not sums_kept(everything, costs)]
    for costs in more:
        print(f"{costs}: a sum is above the floor's", file=sys.stderr)
    broken = [cell for cell in everything if not cell.kept]
    for cell in broken:
        what = f"{cell.retries} retries" if cell.completed else cell.failure
        print(f"{cell.trace} at {cell.factor:g} x: {what}", file=sys.stderr)
    print(f"{len(everything)} runs: {len(broken)} that did not complete, or needed a retry")
    return 1 if broken or more else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
