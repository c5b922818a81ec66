"""Where recorded traces lie, and working through many of them at once."""

import csv
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

from movie.errors import InputError

SNAPSHOT_SUFFIXES = (".pickle", ".pickle.gz", ".html")

GMLAKE_ITERATIONS = 30  # in each of the traces on which it was measured

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def data_folder() -> Path:
    """The folder of recorded traces: the environment's MOVIE_DATA, else ../shared/data from where we are.

    Raises InputError if it is not there.
    """
    path = Path(os.environ.get("MOVIE_DATA", "../shared/data"))
    if not (path / "INDEX.tsv").is_file():
        raise InputError(f"no recorded traces at {path}: set MOVIE_DATA to their folder, or name trace files")
    return path


def snapshot_files(data: Path) -> list[Path]:
    """Memory snapshots of real programs."""
    return _files(data / "snapshots", SNAPSHOT_SUFFIXES)


def recording_files(data: Path) -> list[Path]:
    """Whole training runs."""
    return _files(data / "recordings", SNAPSHOT_SUFFIXES)


def case_files(data: Path) -> list[Path]:
    """Short traces written from problem reports."""
    return _files(data / "cases", (".case",))


def gmlake_files(data: Path) -> list[Path]:
    """The traces on which the released GMLake was measured: allocations and frees alone."""
    return _files(data / "gmlake-traces", (".bin.xz",))


def iterations_of(path: Path) -> int | None:
    """Iterations of a recorded run, as the INDEX.tsv beside it or the measurement of GMLake says; None: nobody does."""
    if path.name.endswith(".bin.xz"):
        return GMLAKE_ITERATIONS
    index = path.with_name("INDEX.tsv")
    if not index.is_file():
        return None
    with index.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row["file"] == path.name and row.get("iterations", "").isdecimal():
                return int(row["iterations"])
    return None


def files_in(paths: Iterable[str | Path]) -> Iterator[Path]:
    """The files that the paths stand for: themselves, or those of a folder that look like traces."""
    for path in map(Path, paths):
        if path.is_dir():
            found = _files(path, (*SNAPSHOT_SUFFIXES, ".case", ".parquet", ".bin.xz"))
            if not found:
                raise InputError(f"{path}: no traces in this folder")
            yield from found
        else:
            yield path


def in_parallel(
    work: Callable[[_Item], _Result], items: Sequence[_Item], processes: int | None = None
) -> Iterator[_Result]:
    """The work on each item, results in the order of the items, over `processes` (default: one a core).

    `work` and the items must be picklable. The first exception ends it.
    """
    processes = min(processes or len(os.sched_getaffinity(0)), len(items))
    if processes <= 1:
        yield from map(work, items)
        return
    with ProcessPoolExecutor(processes) as pool:
        try:
            yield from pool.map(work, items)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _files(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name.endswith(suffixes))
