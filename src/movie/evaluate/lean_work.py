"""What does `movie-lean` still do late in a run? Pages it maps an iteration, beside a prototype of the same idea.

    python -m movie.evaluate.lean_work [--prototype SOURCE] [PATH...]

prints, for each trace and lag (0 and 1,000 rows), the pages of 2 MiB that are mapped in views an iteration in the last
quarter of the run: by movie-lean on an ample card, and by a small program that is not part of this project
(`../prototypes/placement/arena_views.cpp` from the folder of recorded traces, or SOURCE), which makes views and never
edits one. Streams and lag are nothing to it, so it is shown, not judged, where a trace has several streams. Without a
PATH: the recordings of MOVIE_DATA, and the traces on which GMLake was measured, whose lengths vary. Exits with 1 if
movie-lean maps more than half as many on a trace of one stream; with 2 for bad input.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from movie.errors import InputError
from movie.evaluate.pressure_floor import compile_floor, floor_rows
from movie.evaluate.recorded import (
    data_folder,
    files_in,
    gmlake_files,
    in_parallel,
    iterations_of,
    recording_files,
)
from movie.evaluate.replay import replay

LAGS = (0, 1000)
SHARE = 0.5  # of what the prototype maps
_MAPS = re.compile(r"\bmaps (\d+)\b")


@dataclass(frozen=True)
class LeanWork:
    """Pages mapped an iteration in the last quarter of one trace."""

    name: str
    lag: int
    streams: int
    lean: float
    prototype: float

    @property
    def kept(self) -> bool:
        """Whether movie-lean maps at most half as many, where the two can be compared."""
        return self.streams > 1 or self.lean <= SHARE * self.prototype


def work_of(path: Path, *, prototype: Path) -> list[LeanWork]:
    """One trace at each of LAGS. Raises InputError for a file that cannot be read, or of unknown iterations."""
    from movie.trace import read_trace  # noqa: PLC0415  -- readers are slow to import

    iterations = iterations_of(path)
    if iterations is None:
        raise InputError(f"{path}: nobody says how many iterations it has")
    found = []
    for trace in read_trace(path):
        rows = floor_rows(trace)
        late = _maps(prototype, rows) - _maps(prototype, rows[: len(rows) - len(rows) // 4])
        for lag in LAGS:
            driver = replay(trace, "movie-lean", lag=lag, validate=False).driver_last_quarter
            lean = max(0, driver["map"] - driver["create"])
            streams = len(np.unique(rows[:, 3]))
            found.append(LeanWork(path.name, lag, streams, 4 * lean / iterations, 4 * late / iterations))
    return found


def _maps(program: Path, rows: NDArray[np.int64]) -> int:
    """Pages that the prototype maps in views for these rows."""
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        rows.tofile(file.name)
        done = subprocess.run([program, file.name], capture_output=True, text=True, check=False)
    counted = _MAPS.search(done.stdout)
    if done.returncode != 0 or counted is None:
        raise RuntimeError(f"{program.name} failed: {done.stderr.strip() or done.stdout.strip() or done.returncode}")
    return int(counted[1])


def prototype_source(data: Path) -> Path | None:
    """The prototype's source beside the folder of recorded traces, if it is there."""
    path = data.parent / "prototypes" / "placement" / "arena_views.cpp"
    return path if path.is_file() else None


def default_files() -> list[Path]:
    """Traces whose lengths vary: where they do not, nothing is mapped late."""
    data = data_folder()
    return [path for path in [*recording_files(data), *gmlake_files(data)] if "_var." in path.name]


_FORMAT = "{:>5}  {:>7}  {:>10}  {:>9}  {:>5}  {:6}  {}"
HEADINGS = ("lag", "streams", "movie-lean", "prototype", "share", "", "file")


def _line(one: LeanWork) -> str:
    share = f"{one.lean / one.prototype:.2f}" if one.prototype else "-"
    return _FORMAT.format(
        one.lag,
        one.streams,
        f"{one.lean:,.1f}",
        f"{one.prototype:,.1f}",
        share,
        "" if one.kept else "MISSED",
        one.name,
    )


def main(arguments: Sequence[str]) -> int:
    """Prints the table; 0 if all is within the limit, 1 if not, 2 for bad input."""
    parser = argparse.ArgumentParser(
        prog="python -m movie.evaluate.lean_work", description="What `movie-lean` does late in a run."
    )
    parser.add_argument("paths", nargs="*", metavar="PATH")
    parser.add_argument("--prototype", type=Path, metavar="SOURCE", help="the source of the prototype's program")
    chosen = parser.parse_args(arguments)
    kept = True
    try:
        source = chosen.prototype or prototype_source(data_folder())
        if source is None:
            raise InputError("the prototype's source is not beside the recorded traces: name it with --prototype")
        paths = list(files_in(chosen.paths)) if chosen.paths else default_files()
        with tempfile.TemporaryDirectory() as folder:
            work = partial(work_of, prototype=compile_floor(source, Path(folder)))
            print(f"{_FORMAT.format(*HEADINGS)}   (pages mapped an iteration, last quarter)", flush=True)
            for found in in_parallel(work, paths):
                for one in found:
                    kept &= one.kept
                    print(_line(one), flush=True)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
