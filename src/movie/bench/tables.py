"""What a bench found, as tables of texts, which a terminal, Markdown and a page can show."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from movie.bench.figures import ALLOCATORS, OURS, RIVALS
from movie.bench.iteration import USUAL
from movie.bench.pressure import Row, lines, measured, races, slowdown
from movie.bench.run import Outcome
from movie.report.terminal import driver_time
from movie.sizes import format_size

_NONE = "–"
_COMPARED = tuple(name for name in ALLOCATORS if name != "bound")
_ABOUT_TIME = ("synchronize", "event_record", "stream_wait")


@dataclass(frozen=True)
class Table:
    """`note`: how to read it. All rows are as long as the headings, the first column names things."""

    title: str
    note: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def overview(outcomes: Sequence[Outcome]) -> list[Table]:
    """A row for each cell, a column for each allocator."""
    return [
        _by_allocator(
            outcomes,
            "Utilization",
            "Peak requested over peak reserved on an ample card. native and expandable: real runs of PyTorch on a "
            "phantom; the others: replays of the native run.",
            lambda row: f"{row['utilization']:.1%}",
        ),
        _by_allocator(
            outcomes,
            "Smallest card",
            "On which a replay completes, over the peak requested, without the context.",
            lambda row: (
                _NONE if row["smallest_card"] is None else f"{row['smallest_card'] / row['peak_requested']:.3f}"
            ),
        ),
        _by_allocator(
            outcomes,
            "An iteration on that card",
            "Modelled seconds, mean over the run with its first iterations: computing at 40 % of an A100's peak, "
            f"driver calls and stalls. {_NONE}: the operations of this workload are not counted.",
            lambda row: _seconds((row["on_smallest_card"] or {}).get("iteration_seconds")),
        ),
        _by_allocator(
            outcomes,
            "A late iteration on that card",
            "The same with the driver calls and stalls of the run's last quarter.",
            lambda row: _seconds((row["on_smallest_card"] or {}).get("iteration_seconds_last_quarter")),
        ),
        _by_allocator(
            outcomes,
            "Stalls in it",
            "Seconds of a late iteration by which waits delay the card, its streams running side by side.",
            lambda row: _seconds((row["on_smallest_card"] or {}).get("stall_seconds_last_quarter")),
        ),
        on_rivals_cards(outcomes),
        curves(outcomes),
    ]


def on_rivals_cards(outcomes: Sequence[Outcome]) -> Table:
    """A row for each cell, three columns for each rival: on its smallest card, its iteration and ours."""
    headings = [f"{rival}'s: {who}" for rival in RIVALS for who in ("itself", *OURS)]
    rows = []
    for cell in measured(outcomes):
        texts = []
        for rival in RIVALS:
            for number, ours in enumerate(OURS):
                race = next(iter(races([cell], rival, ours, USUAL, late=True)), None)
                if number == 0:
                    texts.append(_seconds(race.theirs_seconds if race else None))
                texts.append(_seconds(race.seconds if race else None))
        rows.append((next(iter(cell.values()))["cell"], *texts))
    note = (
        f"Modelled seconds of a late iteration on the smallest card of a rival. {_NONE}: does not complete, or unknown."
    )
    return Table("On the smallest card of each rival", note, ("cell", *headings), tuple(rows))


def curves(outcomes: Sequence[Outcome]) -> Table:
    """A row for each allocator of each cell, a column for each size of a card."""
    found, factors = [], []
    for outcome in outcomes:
        for row in outcome.rows:
            if row["allocator"] in _COMPARED and row["curve"]:
                factors = [f"{point['factor']:g} x" for point in row["curve"]]
                texts = [_share(slowdown(row, point)) if point["completed"] else "no" for point in row["curve"]]
                found.append((row["cell"], row["allocator"], *texts))
    note = (
        "A late iteration over the computing in it, on cards of so many times the peak requested and 64 MiB more. no: "
        f"the replay does not complete; {_NONE}: the operations of this workload are not counted."
    )
    return Table("Cards of all sizes", note, ("cell", "allocator", *factors), tuple(found))


def details(outcomes: Sequence[Outcome]) -> Table:
    """A row for each allocator of each cell."""
    headings = (
        "cell",
        "allocator",
        "requested",
        "reserved",
        "used",
        "smallest card",
        "retries there",
        "driver calls",
        "driver time",
        "last quarter",
        "driver time there",
        "waits",
        "stalled rows",
        "host",
    )
    rows = tuple(_detail(row) for outcome in outcomes for row in outcome.rows)
    note = (
        "Driver calls and times are modelled, on an ample card; there: on the smallest card. Host: processor time of a "
        "replayed event, native's being 1."
    )
    return Table("All figures", note, headings, rows)


def summary(outcomes: Sequence[Outcome]) -> list[str]:
    """What the tables come to, in sentences: utilization of ours against each rival's, over all measured cells."""
    cells = measured(outcomes)
    said = []
    for ours in OURS:
        for rival in RIVALS:
            gains = [
                (cell[ours]["utilization"] - cell[rival]["utilization"], cell[ours]["cell"])
                for cell in cells
                if ours in cell and rival in cell
            ]
            if gains:
                most, where = max(gains)
                below = sum(gain < 0 for gain, _ in gains)
                said.append(
                    f"{ours} against {rival}: utilization {100 * sum(gain for gain, _ in gains) / len(gains):+.2f} "
                    f"points on average over {len(gains)} cells, at most {100 * most:+.2f} ({where}), "
                    f"below it in {below}"
                )
    return said + lines(cells)


def failures(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each cell that could not be measured."""
    return [f"{outcome.cell.name}: {outcome.failure}" for outcome in outcomes if outcome.failure]


def _by_allocator(outcomes: Sequence[Outcome], title: str, note: str, text: Callable[[Row], str]) -> Table:
    rows = []
    for outcome in outcomes:
        found = {row["allocator"]: row for row in outcome.rows}
        rows.append((outcome.cell.name, *(text(found[name]) if name in found else "failed" for name in _COMPARED)))
    return Table(title, note, ("cell", *_COMPARED), tuple(rows))


def _detail(row: Row) -> tuple[str, ...]:
    there = row["on_smallest_card"]
    calls = sum(count for call, count in row["driver"].items() if call not in _ABOUT_TIME)
    return (
        row["cell"],
        row["allocator"] + ("" if row["completed"] else " (does not complete)"),
        format_size(row["peak_requested"]),
        format_size(row["peak_reserved"]),
        f"{row['utilization']:.2%}",
        _NONE if row["smallest_card"] is None else format_size(row["smallest_card"]),
        _NONE if there is None else f"{there['retries']:,}",
        f"{calls:,}",
        driver_time(row["driver_seconds"]),
        driver_time(row["driver_seconds_last_quarter"]),
        _NONE if there is None else driver_time(there["driver_seconds"]),
        f"{row['driver']['stream_wait']:,}",
        f"{row['stalled_rows']:,}",
        _NONE if row["host_relative"] is None else f"{row['host_relative']:.2f}",
    )


def _share(value: float | None) -> str:
    return _NONE if value is None else f"{value:.3f}"


def _seconds(value: float | None) -> str:
    return _NONE if value is None else f"{value:.3f}"
