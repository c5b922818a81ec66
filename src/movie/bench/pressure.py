"""What a bench found where memory is scarce: on cards of all sizes, and on the smallest card of each rival."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from movie.bench.figures import OURS, RIVALS
from movie.bench.iteration import SHARES, USUAL
from movie.bench.run import Outcome

Row = Mapping[str, Any]  # as of movie.bench.figures
Cells = Sequence[Mapping[str, Row]]  # for each measured cell its rows, by allocator


@dataclass(frozen=True)
class Race:
    """A rival and one of ours on the rival's smallest card, in seconds of an iteration.

    `late`: with driver calls and stalls of the run's last quarter; else the mean over the whole run.
    """

    cell: str
    rival: str
    ours: str
    share: float
    late: bool
    theirs_seconds: float
    seconds: float | None  # None: it does not complete there
    computing_seconds: float  # the part that no allocator can shorten

    @property
    def speed(self) -> float:
        """How many times as fast ours is; 0 where it does not complete."""
        return self.theirs_seconds / self.seconds if self.seconds else 0.0

    @property
    def possible(self) -> float:
        """How many times as fast an allocator would be that costs no time at all."""
        return self.theirs_seconds / self.computing_seconds


def measured(outcomes: Sequence[Outcome]) -> Cells:
    """The rows of each cell that was measured, by allocator."""
    return [{row["allocator"]: row for row in outcome.rows} for outcome in outcomes if outcome.rows]


def races(cells: Cells, rival: str, ours: str, share: float, *, late: bool) -> list[Race]:
    """One for each cell in which the rival has a smallest card, and whose operations are known."""
    key = "iteration_seconds_last_quarter_at" if late else "iteration_seconds_at"
    found = []
    for cell in cells:
        theirs = cell[rival]["on_smallest_card"] if rival in cell else None
        if theirs is None or ours not in cell or theirs[key][str(share)] is None:
            continue
        there = cell[ours]["on_card_of"].get(rival)
        seconds = None if there is None else there[key][str(share)]
        computing = cell[ours]["device_seconds"] * USUAL / share
        found.append(Race(cell[ours]["cell"], rival, ours, share, late, theirs[key][str(share)], seconds, computing))
    return found


def lines(cells: Cells) -> list[str]:
    """What the races come to: for each of ours and each rival the mean, the least and the most."""
    found = []
    for ours in OURS:
        for rival in RIVALS:
            for late in (False, True):
                runs = {share: races(cells, rival, ours, share, late=late) for share in SHARES}
                usual = runs[SHARES[1]]
                if not usual:
                    continue
                what = "a late iteration" if late else "an iteration, the first ones included,"
                means = " / ".join(f"{mean(race.speed for race in runs[share]):.2f}" for share in SHARES)
                possible = " / ".join(f"{mean(race.possible for race in runs[share]):.2f}" for share in SHARES)
                least, most = min(usual, key=lambda race: race.speed), max(usual, key=lambda race: race.speed)
                found.append(
                    f"{ours} on {rival}'s smallest card: {what} is {means} times as fast on average over {len(usual)} "
                    f"cells (computing at {' / '.join(f'{share:.0%}' for share in SHARES)} of the peak; if the "
                    f"allocator took no time at all: {possible}), at least "
                    f"{least.speed:.2f} ({least.cell}), at most {most.speed:.2f} ({most.cell})"
                )
    return found


def slowdown(row: Row, point: Mapping[str, Any]) -> float | None:
    """A late iteration on a card of the curve over the computing in it; None: the run does not complete, or unknown."""
    if not point["completed"] or not row["device_seconds"]:
        return None
    return float(point["iteration_seconds_last_quarter"]) / float(row["device_seconds"])
