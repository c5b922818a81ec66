"""The cells of a bench, as many at a time as there are cores."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from movie.bench.cells import Cell
from movie.bench.work import Place, place_of
from movie.errors import InputError
from movie.evaluate.comparison import Progress

_MEASURE = (sys.executable, "-m", "movie.bench.measure")
RECORD = "record"  # said to it behind the cell: no figures
_LOOK = 0.2  # seconds between looks at what runs
_GRACE = 20.0  # seconds that a cell has to end its training run


@dataclass(frozen=True)
class Outcome:
    """A cell, and its rows (movie.bench.figures), or why there are none. `seconds`: what it took, 0 if it was known.

    One that was to be recorded alone has neither.
    """

    cell: Cell
    rows: Sequence[dict[str, Any]]
    failure: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class _Running:
    place: Place
    process: subprocess.Popen[bytes]
    since: float


def run(
    cells: Sequence[Cell], work: Path, *, jobs: int = 0, record: bool = False, progress: Progress | None = None
) -> list[Outcome]:
    """Measures the cells, in processes of their own, `jobs` at a time (0: one for each core). In their order.

    What `work` holds already is not measured again. A cell that fails does not keep the others from being measured.
    When this is interrupted or ended, so are the training runs. `record`: make the captures alone. Raises InputError if
    `work` cannot be written to. For the main thread only.
    """
    tell = progress or (lambda what, share: None)
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{work}: no folder to work in: {error.strerror}") from None
    done: dict[str, Outcome] = {}
    waiting: deque[Cell] = deque()
    for cell in cells:
        place = place_of(work, cell)
        if record and place.recorded():
            done[cell.name] = Outcome(cell, ())
        elif not record and (figures := place.known()) is not None:
            done[cell.name] = Outcome(cell, figures["rows"])
        else:
            waiting.append(cell)
    running: list[_Running] = []
    before = signal.signal(signal.SIGTERM, _end)
    try:
        while waiting or running:
            while waiting and len(running) < (jobs or os.cpu_count() or 1):
                running.append(_start(work, waiting.popleft(), record))
            names = ", ".join(one.place.cell.name for one in running)
            tell(f"{len(done)} of {len(cells)}: {names}", len(done) / len(cells))
            time.sleep(_LOOK)
            for one in [one for one in running if one.process.poll() is not None]:
                running.remove(one)
                done[one.place.cell.name] = _outcome(one, record)
    finally:
        signal.signal(signal.SIGTERM, before)
        _stop(running)
    return [done[cell.name] for cell in cells]


def known(cells: Sequence[Cell], work: Path) -> list[Outcome]:
    """What `work` holds of the cells, with nothing measured; those that it has no figures of fail."""
    found = [(cell, place_of(work, cell).known()) for cell in cells]
    return [Outcome(cell, one["rows"]) if one else Outcome(cell, (), "not run") for cell, one in found]


def _start(work: Path, cell: Cell, record: bool) -> _Running:
    place = place_of(work, cell)
    place.folder.mkdir(parents=True, exist_ok=True)
    with open(place.log, "ab") as log:
        process = subprocess.Popen(
            [
                *_MEASURE,
                str(place.folder),
                str(place.figures),
                json.dumps(cell.as_data()),
                *([RECORD] if record else []),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    return _Running(place, process, time.monotonic())


def _outcome(one: _Running, record: bool) -> Outcome:
    seconds = time.monotonic() - one.since
    if record and one.process.returncode == 0:
        return Outcome(one.place.cell, (), seconds=seconds)
    known = one.place.known() if one.process.returncode == 0 else None
    if known is not None:
        return Outcome(one.place.cell, known["rows"], seconds=seconds)
    lines = one.place.log.read_text(encoding="utf-8", errors="replace").splitlines()
    reason = lines[-1] if lines else f"exit code {one.process.returncode}"
    return Outcome(one.place.cell, (), f"{reason} (see {one.place.log})", seconds)


def _stop(running: Sequence[_Running]) -> None:
    """Ends what still runs: each cell ends its own training run, if it is asked."""
    for one in running:
        with suppress(ProcessLookupError):
            one.process.terminate()
    deadline = time.monotonic() + _GRACE
    for one in running:
        try:
            one.process.wait(max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            one.process.kill()
            one.process.wait()


def _end(number: int, frame: object) -> None:
    raise SystemExit(128 + number)
