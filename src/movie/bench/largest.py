"""The largest batch that fits a card under each allocator, and the throughput that it buys.

    python -m movie.bench.largest FOLDER CELL... [--card 80GiB] [--json FILE]

takes cells of the matrix by name, whatever their batch, and records the training run at batches that grow by half
until no allocator completes on the card, then between. Each recording is replayed under each allocator; captures are
kept in FOLDER, as by `movie bench`. The card is what is left of it beside the CUDA context.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from movie.allocators import AllocatorSpec
from movie.bench.cells import Cell
from movie.bench.figures import OURS, RIVALS
from movie.bench.iteration import SHARES, Iteration
from movie.bench.matrix import FULL, QUICK
from movie.bench.measure import operations_of, record
from movie.bench.work import place_of
from movie.capture.program import ALLOCATORS as REAL
from movie.errors import InputError
from movie.evaluate.comparison import Conditions, compare
from movie.evaluate.replay import ReplayResult
from movie.sizes import parse_size
from movie.trace.output import whole_file

CONTEXT = 500 << 20  # bytes that CUDA's context takes of a card, about
ALLOCATORS = (*RIVALS, *OURS)
_GROWTH = 1.5
_RESOLUTION = 0.06  # a search ends where the batch that fails is larger by this share at most, or by one


@dataclass(frozen=True)
class Tried:
    """A batch on the card: who completes, and what an iteration takes then, in seconds at each share of the peak."""

    batch: int
    completes: Mapping[str, bool]
    seconds: Mapping[str, Mapping[str, float] | None]


def search(start: int, tried: Callable[[int], Mapping[str, bool]]) -> dict[str, int]:
    """The largest batch for each allocator (0: none), to about six in a hundred.

    `tried` says who completes with a batch. It is supposed that who fails with a batch fails with all larger ones.
    """
    known: dict[int, Mapping[str, bool]] = {}

    def ask(batch: int) -> Mapping[str, bool]:
        if batch not in known:
            known[batch] = tried(batch)
        return known[batch]

    batch = start
    while any(ask(batch).values()):
        batch = max(int(batch * _GROWTH), batch + 1)
    batch = start
    while batch > 1 and not all(ask(batch).values()):
        batch = max(int(batch / _GROWTH), 1)
    found = {}
    for name in ask(start):
        fits = max((batch for batch, who in known.items() if who[name]), default=0)
        fails = min(batch for batch, who in known.items() if batch > fits and not who[name])
        while fails - fits > max(1, _RESOLUTION * fits):
            middle = (fits + fails) // 2
            fits, fails = (middle, fails) if ask(middle)[name] else (fits, middle)
        found[name] = fits
    return found


def largest(cell: Cell, work: Path, card: int) -> dict[str, Any]:
    """The largest batches of a cell, as plain data."""
    runs: dict[int, Tried] = {}

    def tried(batch: int) -> Mapping[str, bool]:
        runs[batch] = _run(replace(cell, batch=batch), work, card)
        return runs[batch].completes

    found = search(cell.batch, tried)
    return {
        "cell": cell.name,
        **cell.as_data(),
        "card": card,
        "tried": sorted(runs),
        "largest": {
            name: {
                "batch": batch,
                "iteration_seconds_last_quarter_at": runs[batch].seconds[name] if batch else None,
                "samples_a_second_at": _throughput(batch, runs[batch].seconds[name] if batch else None),
            }
            for name, batch in found.items()
        },
    }


def _throughput(batch: int, seconds: Mapping[str, float] | None) -> dict[str, float] | None:
    return None if seconds is None else {share: batch / value for share, value in seconds.items()}


def _run(cell: Cell, work: Path, card: int) -> Tried:
    place = place_of(work, cell)
    record(place, REAL[:1])
    path = place.capture(REAL[0])
    operations = operations_of(place)
    specs = [AllocatorSpec(name) for name in ALLOCATORS]
    (found,) = compare(path, specs, Conditions(memory=card, validate=False)).devices
    results: dict[str, ReplayResult] = {name: run.result for name, run in zip(ALLOCATORS, found.runs, strict=True)}
    rows_computing = max(result.main_rows for result in results.values())
    iteration = None if operations is None else Iteration(operations, cell.iterations, rows_computing)
    print(f"{cell.name}: {', '.join(name for name in results if results[name].completed) or 'none'}", file=sys.stderr)
    return Tried(
        cell.batch,
        {name: result.completed for name, result in results.items()},
        {
            name: {str(share): iteration.late_seconds(result, share) for share in SHARES} if iteration else None
            for name, result in results.items()
        },
    )


def main(arguments: Sequence[str]) -> int:
    """0 when all cells were searched."""
    line = argparse.ArgumentParser(prog="python -m movie.bench.largest", description=(__doc__ or "").partition("\n")[0])
    line.add_argument("folder", type=Path)
    line.add_argument("cells", nargs="+", metavar="CELL")
    line.add_argument("--card", default="80GiB", help="in all, the context included (default: 80GiB)")
    line.add_argument("--json", type=Path, help="the result (default: standard output)")
    chosen = line.parse_args(arguments)
    named = {cell.name: cell for cell in (*FULL, *QUICK)}
    try:
        unknown = [name for name in chosen.cells if name not in named]
        if unknown:
            raise InputError(f"no cell is called {unknown[0]}: `movie bench --list` names them")
        card = parse_size(chosen.card) - CONTEXT
        found = {"largest": [largest(named[name], chosen.folder, card) for name in chosen.cells]}
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    text = json.dumps(found, indent=1) + "\n"
    if chosen.json:
        with whole_file(chosen.json) as file:
            file.write(text.encode())
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
