"""Traces from logs: allocations and frees in order, where a free names its block by a number or an address.

Logs do not tell when the device was done with a freed block, so `completions_recorded` is false: a free on the block's
own stream is done at once for that stream, and whoever replays decides when others may use the memory. A free on
another stream is one more use of the block, on that stream, and then the free.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from movie.trace.model import Action, Int32, Int64, StartBlocks, Trace, UInt8, UInt64
from movie.trace.source import Source


@dataclass(frozen=True)
class Log:
    """What a log says, an entry a line; arrays of one length.

    `action`: alloc, free_requested, oom or mark. `key`: by which a free names its block, any 64 bits; a key may be used
    again after its free. `bytes`: of frees 0 where the log does not say. `stream`: of frees the stream they were made
    on. `address`, `time_us`: 0 for none. `phase`: of marks, -1 elsewhere.
    """

    action: UInt8
    key: NDArray[Any]
    bytes: Int64
    stream: Int64
    address: UInt64
    time_us: Int64
    phase: Int32

    def __len__(self) -> int:
        return len(self.action)


def log_of(rows: Sequence[tuple[int, int, int, int, int, int]]) -> Log:
    """A log whose keys are addresses: (action, address, bytes, stream, time, phase) an entry, at least one."""
    action, address, size, stream, time, phase = zip(*rows, strict=True)
    addresses = np.array(address, dtype=np.uint64)
    return Log(
        action=np.array(action, dtype=np.uint8),
        key=addresses,
        bytes=np.array(size, dtype=np.int64),
        stream=np.array(stream, dtype=np.int64),
        address=addresses,
        time_us=np.array(time, dtype=np.int64),
        phase=np.array(phase, dtype=np.int32),
    )


def trace_of(
    source: Source,
    log: Log,
    place: Callable[[int], str],
    *,
    start: StartBlocks | None = None,
    keep_unknown: bool = False,
    **facts: Any,
) -> Trace:
    """The trace that a log tells of. `place` says where an entry is, as in `line 3`; `facts` are those of `Trace`.

    `start`: what is known to be alive before the first entry. Frees of blocks that are not known become more such
    blocks, behind those of `start` and ordered by address, where `keep_unknown`; else they are left out, with a
    warning. Left out are also allocations of no bytes and their frees. Raises TraceError where a key is allocated twice
    without a free, and where a free has another size than its block.
    """
    start = StartBlocks() if start is None else start
    allocs, frees = log.action == Action.ALLOC, log.action == Action.FREE_REQUESTED
    own = _pair(source, log, place)  # of each alloc and free the entry that tells of its block; -1 for others
    strangers = frees & (own < 0)
    if keep_unknown:
        found = np.flatnonzero(strangers & (log.bytes > 0))
        found = found[np.argsort(log.address[found], kind="stable")]
        own[found] = found
        strangers = strangers & (own < 0)
        start = _with_blocks(start, log, found)
    number = np.full(len(log), -1, dtype=np.int64)
    of_block = own >= 0
    block = np.where(of_block, own, 0)
    empty = of_block & (log.bytes[block] == 0)
    if keep_unknown:
        number[found] = len(start) - len(found) + np.arange(len(found))
    counted = allocs & ~empty
    number[counted] = len(start) + np.arange(np.count_nonzero(counted))
    _fail(
        source,
        place,
        frees & of_block & (log.bytes != 0) & (log.bytes != log.bytes[block]),
        lambda entry: f"frees {log.bytes[entry]} bytes of a block of {log.bytes[block[entry]]}",
    )
    foreign = frees & of_block & (log.stream != log.stream[block])

    # A free becomes two rows, everything else that is kept one.
    entry = np.repeat(np.arange(len(log)), np.where(empty | strangers, 0, np.where(frees, 2, 1)))
    second = np.zeros(len(entry), dtype=bool)
    second[1:] = entry[1:] == entry[:-1]
    action = log.action[entry].copy()
    action[second] = Action.FREE_COMPLETED
    action[foreign[entry] & ~second] = Action.USE
    action[foreign[entry] & second] = Action.FREE_REQUESTED
    use, of_block, block = action == Action.USE, of_block[entry], block[entry]
    warnings = (
        *facts.pop("warnings", ()),
        *_left_out(int(strangers.sum()), "frees of blocks that were allocated before the log began were left out"),
        *_left_out(int((allocs & empty).sum()), "allocations of no bytes were left out"),
    )
    complete = bool(facts.pop("complete", True)) and not strangers.any() and not len(start)
    return Trace(
        action=action,
        id=np.where(of_block, number[block], -1),
        bytes=np.where(use, 0, np.where(of_block, log.bytes[block], log.bytes[entry])),
        stream=np.where(of_block & ~use, log.stream[block], log.stream[entry]),
        pool=np.zeros(len(entry), dtype=np.int64),
        address=np.where(of_block, log.address[block], log.address[entry]),
        time_us=log.time_us[entry],
        phase=log.phase[entry],
        start=start,
        path=source.path,
        completions_recorded=False,
        complete=complete,
        warnings=warnings,
        **facts,
    )


def _with_blocks(start: StartBlocks, log: Log, entries: Int64) -> StartBlocks:
    """More blocks that were alive at the start: those that these frees end."""
    return StartBlocks(
        bytes=np.concatenate([start.bytes, log.bytes[entries]]),
        size=np.concatenate([start.size, log.bytes[entries]]),
        address=np.concatenate([start.address, log.address[entries]]),
        stream=np.concatenate([start.stream, log.stream[entries]]),
        pool=np.concatenate([start.pool, np.zeros(len(entries), dtype=np.int64)]),
        pending=np.concatenate([start.pending, np.zeros(len(entries), dtype=np.bool_)]),
    )


def _pair(source: Source, log: Log, place: Callable[[int], str]) -> Int64:
    """Of each alloc and free the entry that allocated its block; -1 for frees of unknown blocks and for other entries.

    Among the entries of one key, in order, each free follows its alloc.
    """
    found = np.full(len(log), -1, dtype=np.int64)
    rows = np.flatnonzero((log.action == Action.ALLOC) | (log.action == Action.FREE_REQUESTED))
    order = rows[np.argsort(log.key[rows], kind="stable")]
    alloc = log.action[order] == Action.ALLOC
    follows = np.zeros(len(order), dtype=bool)  # an alloc of the same key
    follows[1:] = (log.key[order[1:]] == log.key[order[:-1]]) & alloc[:-1]
    twice = np.zeros(len(log), dtype=bool)
    twice[order[alloc & follows]] = True
    _fail(source, place, twice, lambda entry: "allocates a block that was allocated already and not freed")
    found[order[alloc]] = order[alloc]
    pairs = np.flatnonzero(~alloc & follows)
    found[order[pairs]] = order[pairs - 1]
    return found


def _left_out(count: int, what: str) -> tuple[str, ...]:
    return (f"{count:,} {what}",) if count else ()


def _fail(source: Source, place: Callable[[int], str], wrong: NDArray[Any], what: Callable[[int], str]) -> None:
    """Raises for the first of the wrong entries, a mask."""
    if wrong.any():
        entry = int(np.argmax(wrong))
        raise source.error(place(entry), what(entry))
