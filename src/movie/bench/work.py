"""The folder in which a bench keeps what it has done, so that the same is not done again."""

import hashlib
import importlib.metadata
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import movie
from movie import _core
from movie.bench.cells import Cell
from movie.bench.sources import content, sources_of
from movie.capture.program import ALLOCATORS as REAL
from movie.phantom.library import library_path

_PACKAGES = ("torch", "transformers", "peft", "accelerate", "deepspeed", "torchvision")
# What captures come from, and what figures do.
_RUNNING = ("movie.capture.program", "movie.capture.assemble")
_WATCHED = "child"  # a folder: runs in the program that is recorded
_FIGURING = "movie.bench.measure"


@cache
def versions() -> dict[str, str]:
    """Of the packages that a training run may use; what is not installed is left out."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@dataclass(frozen=True)
class Place:
    """Where a cell's captures and figures lie. Any other version of what they came from has another place.

    `figures`: what was measured, by the allocators as they are built.
    """

    folder: Path
    figures: Path
    cell: Cell

    @property
    def log(self) -> Path:
        """What the programs wrote."""
        return self.folder / "log"

    def capture(self, allocator: str) -> Path:
        """The trace of the run under an allocator of PyTorch."""
        return self.folder / f"{allocator}.parquet"

    @property
    def operations(self) -> Path:
        """The floating-point operations of an iteration."""
        return self.folder / f"operations-{_scripts_version(self.cell.counter)}"

    def recorded(self) -> bool:
        """Whether all that figures come from is there."""
        files = [self.capture(allocator) for allocator in REAL]
        return all(file.exists() for file in (*files, *([self.operations] if self.cell.counter else [])))

    def known(self) -> dict[str, Any] | None:
        """What was measured already."""
        try:
            found = json.loads(self.figures.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return found if isinstance(found, dict) else None


def place_of(work: Path, cell: Cell) -> Place:
    """The cell's folder, which may not exist yet."""
    workload = _scripts_version(cell.script)
    key = _digest(
        {"cell": json.dumps(cell.as_data()), "workload": workload, "sources": _running_version(), **versions()}
    )
    folder = work / f"{cell.name.replace('/', '_')}-{key}"
    return Place(folder, folder / f"figures-{_figuring_version()}.json", cell)


@cache
def _running_version() -> str:
    """Of what all captures come from: MOVie's own sources and the library of the phantom."""
    root = Path(movie.__file__).parent
    watched = {str(path.relative_to(root)): content(path) for path in sorted(root.glob(f"{_WATCHED}/**/*.py"))}
    sources = sources_of(*_RUNNING) | watched
    return _digest({"sources": _digest(sources), "phantom": content(library_path())})


def _scripts_version(script: str) -> str:
    """Of a script of movie.workloads and of those that it imports; other workloads may change beside it."""
    return _digest(sources_of(f"movie.workloads.{script}"))


@cache
def _figuring_version() -> str:
    """Of what makes figures of captures: the native module and the sources around it."""
    return _digest({"sources": _digest(sources_of(_FIGURING)), "core": content(Path(str(_core.__file__)))})


def _digest(parts: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]
