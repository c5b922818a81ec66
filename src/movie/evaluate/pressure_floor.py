"""A rival for runs under pressure that is outside this project: a small C++ program beside the recorded traces.

It is one file, compiled here on demand, that reads a trace as rows of four 64-bit integers and prints one line. It
keeps an arena for each stream, and views that are kept and edited; pools are not modelled.
"""

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from movie.errors import InputError
from movie.trace.model import Action, Trace, block_table

MIB = 1 << 20
_LINE = re.compile(
    r"page \d+M: (?P<outcome>\S+) peak .* res (?P<reserved>\S+) util .*lastq (?P<seconds>[0-9.]+)s \| "
    r"views (?P<views>\d+) .*edits (?P<edits>\d+) .*waits (?P<waits>\d+) stalled rows (?P<stalled>\d+)"
)


@dataclass(frozen=True)
class FloorRun:
    """What the floor's program says of a trace on a card. Counts of the whole run; seconds are modelled driver time."""

    completed: bool
    seconds_last_quarter: float
    views: int
    edits: int
    waits: int
    stalled_rows: int


def floor_source(data: Path) -> Path | None:
    """The program's source beside the folder of recorded traces, if it is there."""
    path = data.parent / "prototypes" / "placement" / "pressure.cpp"
    return path if path.is_file() else None


def compile_floor(source: Path, folder: Path) -> Path:
    """The program, built into the folder. Raises InputError if there is no compiler or it fails."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        raise InputError(f"{source}: no C++ compiler to build it with")
    program = folder / source.stem
    done = subprocess.run(
        [compiler, "-std=c++20", "-O2", "-w", "-o", program, source], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise InputError(f"{source}: does not compile: {(done.stderr.splitlines() or ['?'])[0]}")
    return program


def floor_rows(trace: Trace) -> NDArray[np.int64]:
    """The trace as the program reads it: rows of (1 alloc | 0 free, id from 1 on, bytes, stream), start blocks first.

    A free is at the row at which the recorded allocator could use the block again, where the trace says that.
    """
    ends = Action.FREE_COMPLETED if trace.completions_recorded else Action.FREE_REQUESTED
    keep = (trace.action == Action.ALLOC) | (trace.action == ends)
    blocks = block_table(trace)
    ids = np.concatenate([np.arange(len(trace.start)), trace.id[keep]])
    is_alloc = np.concatenate([np.ones(len(trace.start), np.int64), trace.action[keep] == Action.ALLOC])
    return np.stack([is_alloc, ids + 1, blocks["bytes"][ids], blocks["stream"][ids]], axis=1).astype(np.int64)


def peak_of(rows: NDArray[np.int64]) -> int:
    """Bytes alive at most, as the program counts them."""
    return int(np.cumsum(np.where(rows[:, 0] == 1, rows[:, 2], -rows[:, 2])).max(initial=0))


def run_floor(program: Path, rows: NDArray[np.int64], card: int, *, lag: int, per_page: bool) -> FloorRun:
    """The rows through the program on a card of so many bytes, pages of 2 MiB, growing before waiting."""
    # It takes the card as a factor of its own peak, to which it adds 64 MiB.
    factor = (card - 64 * MIB) / max(peak_of(rows), 1)
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        rows.tofile(file.name)
        done = subprocess.run(
            [program, file.name, repr(factor), "0", str(lag), "2", "0", "1" if per_page else "0"],
            capture_output=True,
            text=True,
            check=False,
        )
    found = _LINE.search(done.stdout)
    if done.returncode != 0 or found is None:
        raise RuntimeError(f"{program.name} failed: {done.stderr.strip() or done.stdout.strip() or done.returncode}")
    return FloorRun(
        completed=found["outcome"] == "ok",
        seconds_last_quarter=float(found["seconds"]),
        views=int(found["views"]),
        edits=int(found["edits"]),
        waits=int(found["waits"]),
        stalled_rows=int(found["stalled"]),
    )
