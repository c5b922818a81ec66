"""The trace model: what one device's allocator was asked for, as columns.

`native/replay/trace_view.h` is the same model for the replay loop; the values of `Action` are shared.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
UInt64 = NDArray[np.uint64]
UInt8 = NDArray[np.uint8]
Int32 = NDArray[np.int32]
Bool = NDArray[np.bool_]

LARGEST = 2**62  # bytes; above any card, and sums of two still fit in 64 bits
DEFAULT_POOL = "default"


class Action(IntEnum):
    """What a row says. The values are part of the file format and of the native interface: only append."""

    ALLOC = 0
    FREE_REQUESTED = 1
    FREE_COMPLETED = 2
    USE = 3
    SYNC = 4
    EMPTY_CACHE = 5
    EXTERNAL = 6
    EXTERNAL_FREE = 7
    MARK = 8
    OOM = 9
    SEGMENT_ALLOC = 10
    SEGMENT_FREE = 11
    SEGMENT_MAP = 12
    SEGMENT_UNMAP = 13
    SNAPSHOT = 14
    RELEASE_POOL = 15
    SEEN = 16


SEGMENT_ACTIONS = (Action.SEGMENT_ALLOC, Action.SEGMENT_FREE, Action.SEGMENT_MAP, Action.SEGMENT_UNMAP)
_OF_A_BLOCK = (Action.ALLOC, Action.FREE_REQUESTED, Action.FREE_COMPLETED, Action.USE)


def _no_sizes() -> Int64:
    return np.zeros(0, dtype=np.int64)


def _no_addresses() -> UInt64:
    return np.zeros(0, dtype=np.uint64)


def _no_flags() -> Bool:
    return np.zeros(0, dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class StartBlocks:
    """Blocks alive before the first row, ordered by address; a block's id is its position. Arrays of equal length.

    `bytes`: as asked for. `size`: of the block, rounded as the recorded allocator did (bytes where that is unknown).
    `address`: 0 where unknown. `pending`: freed already, its completion is still to come.
    """

    bytes: Int64 = field(default_factory=_no_sizes)
    size: Int64 = field(default_factory=_no_sizes)
    address: UInt64 = field(default_factory=_no_addresses)
    stream: Int64 = field(default_factory=_no_sizes)
    pool: Int64 = field(default_factory=_no_sizes)
    pending: Bool = field(default_factory=_no_flags)

    def __len__(self) -> int:
        return len(self.bytes)


@dataclass(frozen=True, eq=False)
class Segments:
    """What the recorded allocator held before the first row, ordered by address. Arrays of equal length.

    An expandable segment is one entry for each contiguous mapped range. `small`: for requests of at most 1 MiB.
    """

    address: UInt64 = field(default_factory=_no_addresses)
    size: Int64 = field(default_factory=_no_sizes)
    stream: Int64 = field(default_factory=_no_sizes)
    pool: Int64 = field(default_factory=_no_sizes)
    small: Bool = field(default_factory=_no_flags)
    expandable: Bool = field(default_factory=_no_flags)

    def __len__(self) -> int:
        return len(self.size)


@dataclass(frozen=True, eq=False)
class Trace:
    """A trace of one device.

    Columns, numpy arrays of one length n, a row each for what happened, in order:

    `action`  uint8, see `Action`
    `id`      int64, which block: dense, start blocks 0..S-1, then one for each alloc in order of rows; -1 for none
    `bytes`   int64, as asked for, repeated on the block's free rows; of segment, oom and external rows their size
    `stream`  int64, of the block; of `use` rows the stream that uses it; of `seen` rows the one on
            which the recorded allocator saw its `bytes`-th event complete
    `pool`    int64, 0 is the default pool, others index `pools`
    `address` uint64, as recorded, 0 where the format has none
    `time_us` int64, microseconds of the recording's clock, 0 for none
    `phase`   int32, of `mark` rows: index in `phases`; -1 elsewhere

    `start`, `segments`: the state before the first row. `start_reserved`, `end_reserved`: bytes the recorded allocator
    held then and at the end (0 where the format has none).

    `completions_recorded`: whether free_completed rows tell when a block could be used again. If not, only `use` rows
    say who may still work with a freed block, and its completion is up to whoever replays.

    `complete`: the trace tells of everything from an empty allocator on. False where recording began (or the ring
    buffer of a snapshot dropped its head) while blocks or segments were held, where rows had to be left out, or where
    the program failed before its end; `warnings` says which, one line each.

    `path`, `format`, `device`, `devices` (how many the file has), `settings` (allocator settings as recorded), `header`
    (of cases), `capacity` and `split_limit` (of cases, bytes): as the file says.
    """

    action: UInt8
    id: Int64
    bytes: Int64
    stream: Int64
    pool: Int64
    address: UInt64
    time_us: Int64
    phase: Int32
    start: StartBlocks = field(default_factory=StartBlocks)
    segments: Segments = field(default_factory=Segments)
    start_reserved: int = 0
    end_reserved: int = 0
    pools: tuple[str, ...] = (DEFAULT_POOL,)
    phases: tuple[str, ...] = ()
    path: str = ""
    format: str = ""
    device: int = 0
    devices: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)
    header: Mapping[str, str] = field(default_factory=dict)
    capacity: int | None = None
    split_limit: int | None = None
    completions_recorded: bool = True
    complete: bool = True
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.action)

    @property
    def allocations(self) -> int:
        """How many alloc rows there are."""
        return int(np.count_nonzero(self.action == Action.ALLOC))

    @property
    def ids(self) -> int:
        """How many blocks there are: start blocks and allocations."""
        return len(self.start) + self.allocations

    def check(self) -> "Trace":
        """The trace itself, if its columns agree with each other and with the rules above.

        Raises ValueError, with the column and row, otherwise.
        """
        _check_table(self, COLUMNS, "")
        _check_table(self.start, START_COLUMNS, "start.")
        _check_table(self.segments, SEGMENT_COLUMNS, "segments.")
        _check_values(self)
        _check_lives(self)
        _check_total(self)
        return self


COLUMNS: dict[str, type[np.generic]] = {
    "action": np.uint8,
    "id": np.int64,
    "bytes": np.int64,
    "stream": np.int64,
    "pool": np.int64,
    "address": np.uint64,
    "time_us": np.int64,
    "phase": np.int32,
}
_STATE: dict[str, type[np.generic]] = {"stream": np.int64, "pool": np.int64, "size": np.int64, "address": np.uint64}
START_COLUMNS: dict[str, type[np.generic]] = {"bytes": np.int64, **_STATE, "pending": np.bool_}
SEGMENT_COLUMNS: dict[str, type[np.generic]] = {**_STATE, "small": np.bool_, "expandable": np.bool_}


def block_table(trace: Trace) -> dict[str, NDArray[Any]]:
    """Of each block, by id: `bytes`, `stream`, `pool`, `address`, from the start state and the alloc rows."""
    allocs = np.flatnonzero(trace.action == Action.ALLOC)
    return {
        name: np.concatenate([getattr(trace.start, name), getattr(trace, name)[allocs]])
        for name in ("bytes", "stream", "pool", "address")
    }


def with_block_values(trace: Trace) -> Trace:
    """The trace with the bytes, stream, pool and address of free rows taken from their blocks.

    Raises ValueError for a free row of no block.
    """
    frees = (trace.action == Action.FREE_REQUESTED) | (trace.action == Action.FREE_COMPLETED)
    if not frees.any():
        return trace
    ids = np.where(frees, trace.id, 0)
    _fail("id", (ids < 0) | (ids >= trace.ids), "no such block")
    table = block_table(trace)

    def of_block(name: str) -> Any:
        return np.where(frees, table[name][ids], getattr(trace, name))

    return replace(
        trace, bytes=of_block("bytes"), stream=of_block("stream"), pool=of_block("pool"), address=of_block("address")
    )


def _fail(column: str, rows: NDArray[Any], what: str) -> None:
    """Raises for the first of the bad rows, a mask."""
    if rows.any():
        raise ValueError(f"{column}[{int(np.argmax(rows))}]: {what}")


def _check_table(table: Any, columns: Mapping[str, type[np.generic]], prefix: str) -> None:
    length = len(getattr(table, next(iter(columns))))
    for name, dtype in columns.items():
        column = getattr(table, name)
        if not isinstance(column, np.ndarray) or column.ndim != 1:
            raise ValueError(f"{prefix}{name}: not a one-dimensional array")
        if column.dtype != dtype:
            raise ValueError(f"{prefix}{name}: {column.dtype}, not {np.dtype(dtype)}")
        if len(column) != length:
            raise ValueError(f"{prefix}{name}: {len(column)} entries where other columns have {length}")
    for name in ("bytes", "size"):
        if name in columns:
            column = getattr(table, name)
            _fail(prefix + name, (column < 0) | (column > LARGEST), "not a size from 0 to 2**62")


def _check_values(trace: Trace) -> None:
    _fail("action", trace.action > max(Action), "no such action")
    mark = trace.action == Action.MARK
    _fail(
        "phase",
        np.where(mark, (trace.phase < 0) | (trace.phase >= len(trace.phases)), trace.phase != -1),
        "not a phase",
    )
    for table, prefix in ((trace, ""), (trace.start, "start."), (trace.segments, "segments.")):
        _fail(f"{prefix}pool", (table.pool < 0) | (table.pool >= len(trace.pools)), "no such pool")
    _fail("bytes", (trace.action == Action.ALLOC) & (trace.bytes == 0), "an allocation of nothing")
    _fail("start.bytes", trace.start.bytes == 0, "a block of nothing")
    for name in ("start_reserved", "end_reserved"):
        if not 0 <= getattr(trace, name) <= LARGEST:
            raise ValueError(f"{name}: not a size from 0 to 2**62")
    for name in ("capacity", "split_limit"):
        value = getattr(trace, name)
        if value is not None and not 0 <= value <= LARGEST:
            raise ValueError(f"{name}: not a size from 0 to 2**62")


def _check_lives(trace: Trace) -> None:
    """Ids are dense and in order; each block is allocated, used, freed and completed in this order, and once."""
    action, ids = trace.action, trace.id
    of_block = np.isin(action, _OF_A_BLOCK)
    _fail("id", ~of_block & (ids != -1), "an id on a row that is of no block")
    allocs = np.flatnonzero(action == Action.ALLOC)
    first = len(trace.start)
    wrong = ids[allocs] != first + np.arange(len(allocs))
    if wrong.any():
        raise ValueError(f"id[{int(allocs[np.argmax(wrong)])}]: allocations are not numbered in order")
    _fail("id", of_block & ((ids < 0) | (ids >= trace.ids)), "no such block")

    never = np.int64(len(trace))
    born = np.full(trace.ids, -1, dtype=np.int64)
    born[first:] = allocs
    freed = np.full(trace.ids, never)
    freed[:first][trace.start.pending] = -1
    for kind, last, before in ((Action.FREE_REQUESTED, freed, "allocated"), (Action.FREE_COMPLETED, None, "freed")):
        rows = np.flatnonzero(action == kind)
        blocks = ids[rows]
        early = rows <= (born[blocks] if kind == Action.FREE_REQUESTED else freed[blocks])
        twice = np.zeros(len(rows), dtype=bool)
        order = np.argsort(blocks, kind="stable")
        twice[order[1:]] = blocks[order[1:]] == blocks[order[:-1]]
        if kind == Action.FREE_REQUESTED:
            twice |= freed[blocks] == -1
        if early.any():
            raise ValueError(
                f"id[{int(rows[np.argmax(early)])}]: {kind.name.lower()} of a block that is not {before} yet"
            )
        if twice.any():
            raise ValueError(f"id[{int(rows[np.argmax(twice)])}]: {kind.name.lower()} of a block for the second time")
        if last is not None:
            last[blocks] = rows
    uses = np.flatnonzero(action == Action.USE)
    wrong = (uses <= born[ids[uses]]) | (uses >= freed[ids[uses]])
    if wrong.any():
        raise ValueError(f"id[{int(uses[np.argmax(wrong)])}]: use of a block that is not alive")

    table = block_table(trace)
    frees = np.flatnonzero((action == Action.FREE_REQUESTED) | (action == Action.FREE_COMPLETED))
    for name in ("bytes", "stream", "pool", "address"):
        wrong = getattr(trace, name)[frees] != table[name][ids[frees]]
        if wrong.any():
            raise ValueError(f"{name}[{int(frees[np.argmax(wrong)])}]: differs from the block's allocation")


def _check_total(trace: Trace) -> None:
    """Whatever is summed up over a trace fits in 64 bits."""
    grows = np.isin(trace.action, (Action.ALLOC, Action.EXTERNAL, Action.SEGMENT_ALLOC, Action.SEGMENT_MAP))
    sums = [trace.bytes[grows], trace.start.bytes, trace.segments.size]
    if sum(float(sizes.sum(dtype=np.float64)) for sizes in sums) > LARGEST:
        raise ValueError("bytes: the sizes add up to more than 2**62")


def same(a: Trace, b: Trace) -> bool:
    """Whether two traces say the same, column by column and fact by fact; where they were read from does not count."""
    for f in fields(Trace):
        if f.name in ("path", "format"):
            continue
        x, y = getattr(a, f.name), getattr(b, f.name)
        if isinstance(x, np.ndarray):
            equal = bool(np.array_equal(x, y))
        elif isinstance(x, StartBlocks | Segments):
            equal = all(np.array_equal(getattr(x, g.name), getattr(y, g.name)) for g in fields(x))
        else:
            equal = bool(x == y)
        if not equal:
            return False
    return True
