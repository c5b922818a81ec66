"""A program in an environment that has it watched, and what it leaves."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import movie.child
from movie.child.outcome import PROBLEM_EXIT
from movie.errors import InputError
from movie.phantom.environment import phantom_environment, prepend
from movie.phantom.process import Output, run_program
from movie.phantom.settings import PhantomSettings

INTERRUPTED = 130  # the exit code of a program that ctrl-C ended
_CONFIGURATION = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")  # the first that is set counts
ALLOCATORS = ("native", "expandable")


@dataclass(frozen=True)
class Watching:
    """How a program is run. `phantom`: None for the machine's own card. `allocator`: of ALLOCATORS; None: as it is.

    `history`: whether all events are recorded, or only figures at the end. `steps`: the program ends after so many
    steps of its optimizer; 0: when it ends by itself.
    """

    phantom: PhantomSettings | None
    allocator: str | None = None
    history: bool = True
    steps: int = 0
    output: Output = Output.AS_IS


@dataclass(frozen=True)
class Recorded:
    """What one process that used a card has left. `snapshot`: the file, None where there is no history."""

    process: int
    facts: Mapping[str, Any]
    snapshot: Path | None


@dataclass(frozen=True)
class Ended:
    """A program that has come to its end. `exit_code`: 128 + n after signal n. `recorded`: those that used a card,
    rank 0 first, then by the size of what they recorded."""

    exit_code: int
    recorded: Sequence[Recorded] = field(default_factory=tuple)

    def other_allocator(self, wanted: str | None) -> str:
        """Says that the program ran with another allocator than `wanted`, by its own choice; empty if it did not."""
        used = self.recorded[0].facts["allocator"] if self.recorded else wanted
        if wanted in (None, used):
            return ""
        return f"the program itself chooses the allocator {used!r}, not {wanted!r}"

    @property
    def failed(self) -> bool:
        """Whether it says itself that it did not do what it was to do."""
        return self.exit_code != 0


@contextmanager
def watched(command: Sequence[str], watching: Watching) -> Iterator[Ended]:
    """Runs a program to its end. The files of what it has left exist inside the block.

    Raises InputError if there is no such program, or nothing on which it could run.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="movie-capture-")))
        base = _environment(folder, watching)
        if watching.phantom is not None:
            base = stack.enter_context(phantom_environment(watching.phantom, base))
        code = run_program(command, base, watching.output)
        for problem in sorted(folder.glob("*.problem")):
            raise InputError(json.loads(problem.read_text()))
        yield Ended(code, tuple(_recorded(folder)))


def _environment(folder: Path, watching: Watching) -> dict[str, str]:
    environment = dict(os.environ)
    prepend(environment, "PYTHONPATH", str(Path(movie.child.__file__).parent / "path"))
    environment["MOVIE_CAPTURE_FOLDER"] = str(folder)
    environment["MOVIE_CAPTURE_HISTORY"] = str(int(watching.history))
    environment["MOVIE_CAPTURE_STEPS"] = str(watching.steps)
    if watching.phantom is not None:
        environment["MOVIE_ALONE"] = "1"
        environment.pop("CUDA_VISIBLE_DEVICES", None)  # speaks of the machine's own cards
    if watching.allocator is not None:
        choose_allocator(environment, watching.allocator)
    return environment


def choose_allocator(environment: dict[str, str], allocator: str) -> None:
    """Segments as wanted, all other settings as they are."""
    name = next((name for name in _CONFIGURATION if name in environment), _CONFIGURATION[-1])
    kept = [item for item in environment.get(name, "").split(",") if item and "expandable_segments" not in item]
    environment[name] = ",".join([*kept, f"expandable_segments:{allocator == 'expandable'}"])


def _recorded(folder: Path) -> list[Recorded]:
    found = []
    for path in folder.glob("*.facts"):
        snapshot = path.with_suffix(".snapshot")
        found.append(Recorded(int(path.stem), json.loads(path.read_text()), snapshot if snapshot.exists() else None))

    def order(one: Recorded) -> tuple[bool, int]:
        return one.facts["rank"] not in ("", "0"), -(one.snapshot.stat().st_size if one.snapshot else 0)

    return sorted(found, key=order)


def why_nothing(ended: Ended) -> str:
    """A guess at why a program has left no recording."""
    if ended.exit_code == PROBLEM_EXIT:
        return "the phantom stopped the program: see its last line"
    if ended.exit_code == INTERRUPTED:
        return "interrupted before the program used a card"
    if ended.exit_code > 128:
        return f"signal {ended.exit_code - 128} ended the program before it could tell what it recorded"
    if ended.exit_code != 0:
        return f"the program failed with exit code {ended.exit_code} before it used a card"
    return "the program ended without using a card through torch (recording needs PYTHONPATH: not python -I or -E)"
