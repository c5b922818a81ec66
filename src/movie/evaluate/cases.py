"""Does an allocator end each text case as the case's header says that a good allocator would?

    python -m movie.evaluate.cases [PATH...]

prints a line for each case, allocator and lag, with every promise that was broken. Without a PATH: the cases of
MOVIE_DATA. Exits with 1 if one was, 2 for a file that cannot be read.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from movie.errors import InputError
from movie.evaluate.columns import columns_of
from movie.evaluate.recorded import case_files, data_folder, files_in, in_parallel
from movie.evaluate.replay import ReplayResult, replay
from movie.trace.model import Action, Trace

MIB = 1 << 20
ALLOCATORS = ("movie", "movie-lean")
LAGS = (0, 1000, None)  # rows until queued work is done; None: never, only a wait of the host ends it


@dataclass(frozen=True)
class Promise:
    """What a case's header says of a good allocator. Sizes in bytes; None where it says nothing.

    `most_reserved`: at the peak. `alternative_capacity`: of a smaller card on which the run must finish, too.
    `needs_lending`: served if the private pools are marked as lendable, out of memory if not. `slack`: reserved beyond
    what is alive after each empty_cache. `most_at_external`: reserved when another owner of the card asks.
    """

    most_reserved: int
    alternative_capacity: int | None = None
    needs_lending: bool = False
    slack: int | None = None
    most_at_external: int | None = None


def promise_of(trace: Trace) -> Promise:
    """The promise in the header of a case. Raises ValueError for a header that does not say it, or cannot be read."""
    header = trace.header

    def mebibytes(key: str, pattern: str = r"(\d+)") -> int | None:
        if key not in header:
            return None
        found = re.fullmatch(pattern, header[key])
        if found is None:
            raise ValueError(f"{key}: {header[key]!r} is not understood")
        return int(found[1]) * MIB

    most = mebibytes("good_reserved_max_mib")
    if most is None:
        raise ValueError("the header has no good_reserved_max_mib")
    lending = header.get("without_lending")
    if lending not in (None, "fails"):
        raise ValueError(f"without_lending: {lending!r} is not understood")
    return Promise(
        most_reserved=most,
        alternative_capacity=mebibytes("alternative_capacity_mib", r"(\d+) must_finish"),
        needs_lending=lending is not None,
        slack=mebibytes("after_empty_cache_slack_mib"),
        most_at_external=mebibytes("reserved_at_external_max_mib"),
    )


def broken_promises(trace: Trace, allocator: str, lag: int | None, *, validate: bool = True) -> list[str]:
    """What the allocator does not keep of the case's promise, a line each; empty if it keeps all.

    An allocator that grows while the card has room (`movie`) is given a card that has no more room than is good. Raises
    ValueError for a case without a promise, ValidationError if an invariant is broken.
    """
    promise = promise_of(trace)
    columns = columns_of(trace)
    lendable = tuple(range(1, len(trace.pools))) if promise.needs_lending else ()
    others = bool((trace.action == Action.EXTERNAL).any())

    def run(memory: int | None, *, lendable: Sequence[int] = lendable, reclaim: bool = True) -> ReplayResult:
        return replay(
            trace,
            allocator,
            memory=memory,
            lag=lag,
            lendable=lendable,
            reclaim=reclaim,
            validate=validate,
            columns=columns,
        )

    broken: list[str] = []

    def expect(kept: bool, what: str) -> None:
        if not kept:
            broken.append(what)

    def finishes(result: ReplayResult, where: str) -> None:
        expect(result.completed, f"fails {where}: {result.failure}")

    card = trace.capacity
    if allocator == "movie" and not others:
        card = min(promise.most_reserved, card or promise.most_reserved)
    as_told = run(card)
    finishes(as_told, "on the card of the case" if card == trace.capacity else "on a card of what is good")
    excess = as_told.peak_reserved - promise.most_reserved
    expect(excess <= 0, f"reserves {excess / MIB:.1f} MiB more than is good")
    if card != trace.capacity:
        finishes(run(trace.capacity), "on the card of the case")
    if promise.alternative_capacity is not None:
        finishes(run(promise.alternative_capacity), "on the alternative card")
    if promise.needs_lending:
        alone = run(card, lendable=())
        expect(not alone.completed, "takes memory of a private pool that is not lendable")
    if promise.slack is not None:
        expect(len(as_told.reserved_after_empty_cache) > 0, "has no empty_cache")
        reserved = np.array(as_told.reserved_after_empty_cache)
        most = int((reserved - np.array(as_told.live_after_empty_cache)).max(initial=0))
        expect(most <= promise.slack, f"keeps {most / MIB:.1f} MiB more than is alive after empty_cache")
    if promise.most_at_external is not None:
        most = max(as_told.reserved_at_external, default=0)
        expect(most <= promise.most_at_external, f"holds {most / MIB:.1f} MiB when another owner asks")
    if others:
        # Where nobody asks the allocator to give back, the other owner gets what is free, or fails; nothing else does.
        silent = run(trace.capacity, reclaim=False)
        fits = silent.peak_reserved + int(trace.bytes[trace.action == Action.EXTERNAL].max()) <= (trace.capacity or 0)
        expect(
            silent.completed == fits and (fits or "another owner" in silent.failure),
            f"without reclaim: {silent.failure or 'completes'}",
        )
    return broken


def _verdicts(path: Path) -> list[tuple[str, str, int | None, list[str]]]:
    from movie.trace import read_trace  # noqa: PLC0415  -- readers are slow to import

    found = []
    for trace in read_trace(path):
        for allocator in ALLOCATORS:
            for lag in LAGS:
                try:
                    broken = broken_promises(trace, allocator, lag)
                except ValueError as error:
                    raise InputError(f"{path}: {error}") from None
                found.append((path.stem, allocator, lag, broken))
    return found


def _lines(verdicts: list[tuple[str, str, int | None, list[str]]]) -> Iterator[str]:
    for name, allocator, lag, broken in verdicts:
        yield f"{name:48} {allocator:10} {'never' if lag is None else lag:>5}  {'; '.join(broken) or 'ok'}"


def main(arguments: Sequence[str]) -> int:
    """Prints a line for each run; 0 if every promise is kept, 1 if not, 2 for a file that cannot be read."""
    try:
        paths = list(files_in(arguments)) if arguments else case_files(data_folder())
        broken = runs = 0
        for verdicts in in_parallel(_verdicts, paths):
            print(*_lines(verdicts), sep="\n", flush=True)
            runs += len(verdicts)
            broken += sum(bool(verdict[3]) for verdict in verdicts)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{runs} runs of {len(paths)} cases: {broken} break what a good allocator keeps")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
