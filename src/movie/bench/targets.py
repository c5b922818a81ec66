"""What MOVie is meant to reach, and each place where it was measured not to."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import mean
from typing import Any

from movie.bench.figures import OURS, RIVALS
from movie.bench.iteration import SHARES
from movie.bench.pressure import Cells, races
from movie.sizes import format_size

Cell = Mapping[str, Mapping[str, Any]]  # rows by allocator
_ONE_STREAM, _MORE_STREAMS = 0.995, 0.99  # utilization
_CARD, _BESIDE = 1.01, 64 << 20  # times the peak requested, and bytes
_STEADY = 0.005  # of an iteration
_SPEED = 1.5
_SAME = 1e-9  # seconds, and shares: less is no difference


@dataclass(frozen=True)
class Verdict:
    """A target, how often it was looked at, and where it is missed, with the figure."""

    target: str
    looked: int
    missed: tuple[str, ...]


def verdicts(cells: Cells) -> list[Verdict]:
    """All targets over all measured cells."""
    return [
        _over(cells, "movie-lean uses at least 99.5 % with one stream and 99 % with more", _utilization),
        _over(cells, "movie-lean uses no less than any rival", _no_rival_uses_more),
        *(
            _over(
                cells, f"{ours}: smallest card at most 1.01 x peak requested + 64 MiB, with no retry there", _card(ours)
            )
            for ours in OURS
        ),
        *(
            _over(cells, f"{ours} completes on each card of the curve on which a rival does", _completes(ours))
            for ours in OURS
        ),
        *(
            _over(
                cells,
                f"{ours}: driver calls and stalls of a late iteration take no longer than a rival's on that card",
                _curve(ours),
            )
            for ours in OURS
        ),
        *(
            _over(
                cells,
                f"{ours}: {_what(late)} are no slower than {rival}'s on the smallest card of {rival}",
                _race(rival, ours, late),
            )
            for late in (True, False)
            for ours in OURS
            for rival in ("native", "expandable")
        ),
        *(_mean_speed(cells, ours, late) for late in (True, False) for ours in OURS),
        *(
            _over(
                cells, f"{ours}: driver calls take less than 0.5 % of a late iteration on an ample card", _steady(ours)
            )
            for ours in OURS
        ),
    ]


def _over(cells: Cells, target: str, misses: Callable[[Cell], Iterator[str] | None]) -> Verdict:
    found = [(cell, misses(cell)) for cell in cells]
    looked = [(cell, said) for cell, said in found if said is not None]
    missed = tuple(f"{next(iter(cell.values()))['cell']}: {text}" for cell, said in looked for text in said)
    return Verdict(target, len(looked), missed)


def _utilization(cell: Cell) -> Iterator[str] | None:
    ours = cell["movie-lean"]
    least = _ONE_STREAM if ours["streams"] == 1 else _MORE_STREAMS
    return (f"{value:.2%} with {ours['streams']} streams" for value in [ours["utilization"]] if value < least)


def _no_rival_uses_more(cell: Cell) -> Iterator[str] | None:
    ours = cell["movie-lean"]["utilization"]
    return (
        f"{ours:.2%}, {rival} {cell[rival]['utilization']:.2%}"
        for rival in RIVALS
        if cell[rival]["utilization"] > ours + _SAME
    )


def _card(ours: str) -> Callable[[Cell], Iterator[str] | None]:
    def misses(cell: Cell) -> Iterator[str] | None:
        row = cell[ours]
        allowed = _CARD * row["peak_requested"] + _BESIDE
        if row["smallest_card"] is None or row["smallest_card"] > allowed:
            return iter([f"{format_size(row['smallest_card'] or 0)}, allowed {format_size(int(allowed))}"])
        retries = row["on_smallest_card"]["retries"]
        return iter([f"{retries} retries"] if retries else [])

    return misses


def _completes(ours: str) -> Callable[[Cell], Iterator[str] | None]:
    def misses(cell: Cell) -> Iterator[str] | None:
        return (
            f"not at {point['factor']:g} x, where {rival} does"
            for number, point in enumerate(cell[ours]["curve"])
            if not point["completed"]
            for rival in RIVALS
            if cell[rival]["curve"][number]["completed"]
        )

    return misses


def _curve(ours: str) -> Callable[[Cell], Iterator[str] | None]:
    def misses(cell: Cell) -> Iterator[str] | None:
        device = cell[ours]["device_seconds"]
        if device is None:
            return None
        found = []  # by how much longer, and what to say of it
        for number, point in enumerate(cell[ours]["curve"]):
            if not point["completed"]:
                continue
            seconds = point["iteration_seconds_last_quarter"]
            for rival in RIVALS:
                other = cell[rival]["curve"][number]
                if other["completed"] and seconds > other["iteration_seconds_last_quarter"] + _SAME:
                    theirs = other["iteration_seconds_last_quarter"]
                    said = f"{1e3 * (seconds - device):.2f} ms, {rival} {1e3 * (theirs - device):.2f} ms"
                    found.append((seconds - theirs, point["factor"], said))
        if not found:
            return iter([])
        longer, factor, said = max(found)
        cards = len({factor for _, factor, _ in found})
        return iter([f"on {cards} of the cards, most at {factor:g} x: {said}, {longer / device:.2%} of the computing"])

    return misses


def _race(rival: str, ours: str, late: bool) -> Callable[[Cell], Iterator[str] | None]:
    def misses(cell: Cell) -> Iterator[str] | None:
        runs = [race for share in SHARES for race in races([cell], rival, ours, share, late=late)]
        if not runs:
            return None
        worst = min(runs, key=lambda race: race.speed)
        if worst.seconds is None:
            return iter(["does not complete"])
        if worst.seconds <= worst.theirs_seconds + _SAME:
            return iter([])
        slower = worst.seconds / worst.theirs_seconds - 1
        seconds = f"{worst.seconds:.4f} s, {rival} {worst.theirs_seconds:.4f} s at {worst.share:.0%} of the peak"
        return iter([f"{slower:.1%} slower, {seconds}"])

    return misses


def _mean_speed(cells: Cells, ours: str, late: bool) -> Verdict:
    target = f"{ours}: {_what(late)} on gmlake's smallest card are 1.5 times as fast on average"
    runs = {share: races(cells, "gmlake", ours, share, late=late) for share in SHARES}
    looked = len(runs[SHARES[0]])
    if not looked:
        return Verdict(target, 0, ())
    speeds = {share: mean(race.speed for race in found) for share, found in runs.items()}
    if min(speeds.values()) >= _SPEED:
        return Verdict(target, looked, ())
    # Where the rival itself hardly loses time, nobody can be much faster.
    possible = {share: mean(race.possible for race in found) for share, found in runs.items()}
    said = ", ".join(
        f"{speed:.2f} at {share:.0%} of the peak (possible: {possible[share]:.2f})" for share, speed in speeds.items()
    )
    return Verdict(target, looked, (f"{said}, over {looked} cells",))


def _what(late: bool) -> str:
    return "late iterations" if late else "iterations over the whole run, the first ones included,"


def _steady(ours: str) -> Callable[[Cell], Iterator[str] | None]:
    def misses(cell: Cell) -> Iterator[str] | None:
        row = cell[ours]
        if row["iteration_seconds_last_quarter"] is None:
            return None
        driver = 4 * row["driver_seconds_last_quarter"] / row["iterations"]
        share = driver / row["iteration_seconds_last_quarter"]
        return iter([f"{share:.2%} ({1e3 * driver:.2f} ms)"] if share >= _STEADY else [])

    return misses
