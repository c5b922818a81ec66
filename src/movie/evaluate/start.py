"""What does the way to the first peak cost? Driver seconds until a run first holds what it asks for at most.

    python -m movie.evaluate.start [PATH...]

prints, for each trace and cost table, the modelled driver seconds of `movie` and of `expandable` until the requested
bytes first reach their peak, on an ample card and on one of 80 GiB, and the sums. Without a PATH: the recordings of
MOVIE_DATA. Exits with 1 if movie takes more than twice as long as expandable in sum on the ample card, under either
cost table; with 2 for a file that cannot be read.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from movie.errors import InputError
from movie.evaluate.columns import columns_of
from movie.evaluate.recorded import data_folder, files_in, in_parallel, recording_files
from movie.evaluate.replay import replay

FACTOR = 2
COSTS = ("per-call", "per-page")
CARDS: dict[str, int | None] = {"ample": None, "80 GiB": 80 << 30}
LAG = 1000


@dataclass(frozen=True)
class Start:
    """Driver seconds to the first peak of one trace on one card under one cost table. None: the run did not end."""

    name: str
    card: str
    costs: str
    movie: float | None
    expandable: float | None


def starts_of(path: Path) -> list[Start]:
    """Each card and cost table for one trace. Raises InputError for a file that cannot be read."""
    from movie.trace import read_trace  # noqa: PLC0415  -- readers are slow to import

    found = []
    for trace in read_trace(path):
        columns = columns_of(trace)
        for card, memory in CARDS.items():
            for costs in COSTS:
                results = [
                    replay(trace, allocator, memory=memory, lag=LAG, costs=costs, validate=False, columns=columns)
                    for allocator in ("movie", "expandable")
                ]
                movie, expandable = (r.driver_seconds_to_first_peak if r.completed else None for r in results)
                found.append(Start(path.name, card, costs, movie, expandable))
    return found


def sums(found: Sequence[Start], card: str, costs: str) -> tuple[float, float]:
    """Seconds of movie and of expandable, over the runs that both complete."""
    both = [
        (one.movie, one.expandable)
        for one in found
        if (one.card, one.costs) == (card, costs) and one.movie is not None and one.expandable is not None
    ]
    return sum(movie for movie, _ in both), sum(expandable for _, expandable in both)


_FORMAT = "{:8}  {:9}  {:>9}  {:>10}  {:>6}  {}"
HEADINGS = ("card", "costs", "movie", "expandable", "ratio", "file")


def _line(card: str, costs: str, movie: float | None, expandable: float | None, name: str) -> str:
    times = ["fails" if seconds is None else f"{seconds:.4f}" for seconds in (movie, expandable)]
    ratio = f"{movie / expandable:.2f}" if movie is not None and expandable else "-"
    return _FORMAT.format(card, costs, *times, ratio, name)


def main(arguments: Sequence[str]) -> int:
    """Prints the table; 0 if the sums are within the limit, 1 if not, 2 for a file that cannot be read."""
    try:
        paths = list(files_in(arguments)) if arguments else recording_files(data_folder())
        print(f"{_FORMAT.format(*HEADINGS)}   (modelled driver seconds to the first peak)", flush=True)
        everything: list[Start] = []
        for found in in_parallel(starts_of, paths):
            everything += found
            for one in found:
                print(_line(one.card, one.costs, one.movie, one.expandable, one.name), flush=True)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    kept = True
    for card, memory in CARDS.items():
        for costs in COSTS:
            movie, expandable = sums(everything, card, costs)
            print(_line(card, costs, movie, expandable, "sum"))
            if memory is None:
                kept &= movie <= FACTOR * expandable
    print(f"on the ample card movie takes {'at most' if kept else 'MORE THAN'} {FACTOR} x as long as expandable")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
