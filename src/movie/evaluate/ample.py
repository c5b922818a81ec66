"""How much does `movie` hold where memory is not short? Its peak on an ample card, beside PyTorch's two allocators.

    python -m movie.evaluate.ample [PATH...]

prints a line for each device of each trace and each lag (0 and 1,000 rows): GiB requested at the peak, and reserved by
movie, by native and by expandable, and the sums. Without a PATH: the recordings of MOVIE_DATA; a folder stands for its
traces. Exits with 1 if movie reserves more than 1.02 x the less of the two at lag 0, more than native at lag 1,000, or
more in sum than expandable; with 2 for a file that cannot be read.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from movie.errors import InputError
from movie.evaluate.columns import columns_of
from movie.evaluate.recorded import data_folder, files_in, in_parallel, recording_files
from movie.evaluate.replay import replay

GIB = 1 << 30
FACTOR = 1.02
LAGS = (0, 1000)
ALLOCATORS = ("movie", "native", "expandable")


@dataclass(frozen=True)
class Ample:
    """Peaks in bytes of one device's trace at one lag."""

    name: str
    lag: int
    requested: int
    movie: int
    native: int
    expandable: int

    @property
    def limit(self) -> float:
        """Bytes that movie may reserve."""
        return FACTOR * min(self.native, self.expandable) if self.lag == 0 else self.native

    @property
    def kept(self) -> bool:
        """Whether it reserves no more."""
        return self.movie <= self.limit


def ample_of(path: Path) -> list[Ample]:
    """The three allocators on ample cards: each device of the trace, at each of LAGS.

    Raises InputError for a file that cannot be read, RuntimeError if an allocator does not complete.
    """
    from movie.trace import read_trace  # noqa: PLC0415  -- readers are slow to import

    found = []
    for trace in read_trace(path):
        columns = columns_of(trace)
        name = path.name if trace.devices == 1 else f"{path.name} (device {trace.device})"
        for lag in LAGS:
            peaks = {}
            for allocator in ALLOCATORS:
                result = replay(trace, allocator, lag=lag, validate=False, columns=columns)
                if not result.completed:
                    raise RuntimeError(f"{name}: {allocator} fails on an ample card: {result.failure}")
                peaks[allocator] = result.peak_reserved
            found.append(Ample(name=name, lag=lag, requested=result.peak_requested, **peaks))
    return found


def sums_kept(found: Sequence[Ample]) -> bool:
    """Whether movie reserves no more than expandable at either lag, summed over the traces."""
    return all(
        sum(one.movie for one in found if one.lag == lag) <= sum(one.expandable for one in found if one.lag == lag)
        for lag in LAGS
    )


_FORMAT = "{:>5}  {:>9}  {:>9}  {:>9}  {:>10}  {:>8}  {:6}  {}"
HEADINGS = ("lag", "requested", "movie", "native", "expandable", "of limit", "", "file")


def _line(one: Ample) -> str:
    sizes = [f"{size / GIB:,.3f}" for size in (one.requested, one.movie, one.native, one.expandable)]
    share = f"{one.movie / one.limit:.4f}" if one.limit else "-"
    return _FORMAT.format(one.lag, *sizes, share, "" if one.kept else "MISSED", one.name)


def _sum_line(found: Sequence[Ample], lag: int) -> str:
    some = [one for one in found if one.lag == lag]
    sums = [sum(getattr(one, name) for one in some) / GIB for name in ("requested", *ALLOCATORS)]
    return _FORMAT.format(lag, *(f"{size:,.3f}" for size in sums), "", "", "sum")


def main(arguments: Sequence[str]) -> int:
    """Prints the table; 0 if all is within its limits, 1 if not, 2 for a file that cannot be read."""
    try:
        paths = list(files_in(arguments)) if arguments else recording_files(data_folder())
        print(f"{_FORMAT.format(*HEADINGS)}   (GiB)", flush=True)
        everything: list[Ample] = []
        for found in in_parallel(ample_of, paths):
            everything += found
            for one in found:
                print(_line(one), flush=True)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    for lag in LAGS:
        print(_sum_line(everything, lag))
    missed = sum(not one.kept for one in everything)
    fewer = sums_kept(everything)
    print(f"{len(everything)} replays: {missed} missed; in sum {'no' if fewer else 'MORE'} more than expandable")
    return 0 if not missed and fewer else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
