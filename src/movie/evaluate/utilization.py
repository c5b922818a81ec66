"""How little memory does `movie-lean` need? Its peak on each trace against what was asked for, and against `native`.

    python -m movie.evaluate.utilization [PATH...]

prints a line for each device of each trace and each lag (0 and 1,000 rows): MiB requested at the peak (isolated pools
kept apart), reserved by movie-lean and by native, utilization, and the excess of movie-lean over 1.005 x requested. The
cards are ample. Without a PATH: the snapshots, recordings and cases of MOVIE_DATA; a folder stands for its traces.
Exits with 1 if an excess is above 32 MiB or native needs less, 2 for a file that cannot be read.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from movie.errors import InputError
from movie.evaluate.columns import columns_of
from movie.evaluate.recorded import case_files, data_folder, files_in, in_parallel, recording_files, snapshot_files
from movie.evaluate.replay import replay

MIB = 1 << 20
FACTOR = 1.005
LIMIT = 32 * MIB  # of the excess
GOAL = 16 * MIB
LAGS = (0, 1000)


@dataclass(frozen=True)
class Utilization:
    """Peaks in bytes of one device's trace at one lag. `native` is None where it does not complete."""

    name: str
    lag: int
    requested: int
    lean: int
    native: int | None

    @property
    def excess(self) -> float:
        """Bytes beyond 1.005 x what was requested; negative where there is less."""
        return self.lean - FACTOR * self.requested

    @property
    def kept(self) -> bool:
        """Whether the excess is within its limit, and native needs no less."""
        return self.excess <= LIMIT and (self.native is None or self.lean <= self.native)


def utilization_of(path: Path, *, validate: bool = True) -> list[Utilization]:
    """movie-lean and native on ample cards: each device of the trace, at each of LAGS.

    Raises InputError for a file that cannot be read, RuntimeError if movie-lean does not complete, ValidationError if
    an allocator breaks an invariant.
    """
    from movie.trace import read_trace  # noqa: PLC0415  -- readers are slow to import

    found = []
    for trace in read_trace(path):
        columns = columns_of(trace)
        name = path.name if trace.devices == 1 else f"{path.name} (device {trace.device})"
        for lag in LAGS:
            lean = replay(trace, "movie-lean", lag=lag, validate=validate, columns=columns)
            if not lean.completed:
                raise RuntimeError(f"{name}: movie-lean fails on an ample card: {lean.failure}")
            native = replay(trace, "native", lag=lag, validate=False, columns=columns)
            found.append(
                Utilization(
                    name=name,
                    lag=lag,
                    requested=lean.peak_requested,
                    lean=lean.peak_reserved,
                    native=native.peak_reserved if native.completed else None,
                )
            )
    return found


def default_files() -> list[Path]:
    """Every snapshot, recording and case."""
    data = data_folder()
    return [*snapshot_files(data), *recording_files(data), *case_files(data)]


_FORMAT = "{:>5}  {:>10}  {:>10}  {:>10}  {:>6}  {:>8}  {:7}  {}"
HEADINGS = ("lag", "requested", "movie-lean", "native", "used", "excess", "", "file")


def _line(found: Utilization) -> str:
    share = f"{100 * found.requested / found.lean:.1f}%" if found.lean else "-"
    return _FORMAT.format(
        found.lag,
        f"{found.requested / MIB:,.1f}",
        f"{found.lean / MIB:,.1f}",
        "fails" if found.native is None else f"{found.native / MIB:,.1f}",
        share,
        f"{found.excess / MIB:+,.1f}",
        "" if found.kept and found.excess <= GOAL else "> goal" if found.kept else "MISSED",
        found.name,
    )


def main(arguments: Sequence[str]) -> int:
    """Prints the table; 0 if all is within its limits, 1 if not, 2 for a file that cannot be read."""
    try:
        paths = list(files_in(arguments)) if arguments else default_files()
        print(f"{_FORMAT.format(*HEADINGS)}   (MiB; excess over {FACTOR} x requested)", flush=True)
        everything: list[Utilization] = []
        for found in in_parallel(utilization_of, paths):
            everything += found
            for one in found:
                print(_line(one), flush=True)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    missed = sum(not found.kept for found in everything)
    beyond = sum(found.excess > GOAL for found in everything)
    if everything:
        worst = max(everything, key=lambda found: found.excess)
        print(
            f"{len(everything)} replays: {missed} missed, {beyond} above the goal of +{GOAL // MIB} MiB; the largest "
            f"excess is {worst.excess / MIB:+.1f} MiB ({worst.name}, lag {worst.lag})"
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
