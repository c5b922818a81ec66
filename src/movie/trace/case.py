"""Text cases: a format to write small traces by hand, one operation a line.

    # gpu-alloc-case 1
    # title: two halves, then the whole
    capacity 1048576
    alloc a 524288 0 0
    free a

Lines `# key: text` (continued by lines that begin with `#   `) come first, then `capacity BYTES|none`, optionally
`split_limit BYTES`, then operations: `alloc ID BYTES STREAM POOL`, `free ID`, `use ID STREAM`, `sync`, `empty_cache`,
`external BYTES`, `external_free BYTES`. Fields are separated by one blank. An ID is used for one allocation.
"""

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from movie.trace.errors import TraceError
from movie.trace.format import Format
from movie.trace.model import DEFAULT_POOL, LARGEST, Action, Trace
from movie.trace.output import whole_file
from movie.trace.source import Source

_MAGIC = "# gpu-alloc-case"
_VERSION = "1"
_WIDTH = 120
_NUMBER = re.compile(r"-?[0-9]{1,20}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_]{1,200}", re.ASCII)
_HEADER = re.compile(r"# ([!-9;-~][ -9;-~]*): ?([ -~]*)")
_STREAMS = 2**63


@dataclass
class _Block:
    id: int
    bytes: int
    stream: int
    pool: int
    freed: bool = False
    used_elsewhere: bool = False


@dataclass
class _Columns:
    action: list[int] = field(default_factory=list)
    id: list[int] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    stream: list[int] = field(default_factory=list)
    pool: list[int] = field(default_factory=list)

    def row(self, action: Action, block: int = -1, size: int = 0, stream: int = 0, pool: int = 0) -> None:
        self.action.append(action)
        self.id.append(block)
        self.bytes.append(size)
        self.stream.append(stream)
        self.pool.append(pool)


class _Reader:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._line = 0
        self._columns = _Columns()
        self._blocks: dict[str, _Block] = {}
        self._pools: dict[int, int] = {0: 0}
        self._taken = 0  # by other owners of the card
        self._operations: dict[str, tuple[int, Callable[..., None]]] = {
            "alloc": (4, self._alloc),
            "free": (1, self._free),
            "use": (2, self._use),
            "sync": (0, lambda: self._columns.row(Action.SYNC)),
            "empty_cache": (0, lambda: self._columns.row(Action.EMPTY_CACHE)),
            "external": (1, self._external),
            "external_free": (1, self._external_free),
        }

    def _error(self, what: str) -> TraceError:
        return self._source.error(f"line {self._line}", what)

    def _number(self, text: str, what: str, low: int, high: int) -> int:
        if not _NUMBER.fullmatch(text):
            raise self._error(f"{what} '{text}' is not a number")
        value = int(text)
        if not low <= value <= high:
            raise self._error(f"{what} {text} is not from {low} to {high}")
        return value

    def _size(self, text: str) -> int:
        return self._number(text, "the size", 1, LARGEST)

    def _block(self, name: str) -> _Block:
        block = self._blocks.get(name)
        if block is None:
            raise self._error(f"'{name}' was never allocated")
        if block.freed:
            raise self._error(f"'{name}' was freed already")
        return block

    def _alloc(self, name: str, size: str, stream: str, pool: str) -> None:
        if not _NAME.fullmatch(name):
            raise self._error(f"'{name}' is not a name: letters, digits and underscores")
        if name in self._blocks:
            raise self._error(f"'{name}' is allocated for the second time")
        number = self._number(pool, "the pool", 0, LARGEST)
        block = _Block(
            id=len(self._blocks),
            bytes=self._size(size),
            stream=self._number(stream, "the stream", -_STREAMS, _STREAMS - 1),
            pool=self._pools.setdefault(number, len(self._pools)),
        )
        self._blocks[name] = block
        self._columns.row(Action.ALLOC, block.id, block.bytes, block.stream, block.pool)

    def _free(self, name: str) -> None:
        block = self._block(name)
        block.freed = True
        self._columns.row(Action.FREE_REQUESTED, block.id, block.bytes, block.stream, block.pool)
        if not block.used_elsewhere:
            self._columns.row(Action.FREE_COMPLETED, block.id, block.bytes, block.stream, block.pool)

    def _use(self, name: str, stream: str) -> None:
        block = self._block(name)
        number = self._number(stream, "the stream", -_STREAMS, _STREAMS - 1)
        block.used_elsewhere |= number != block.stream
        self._columns.row(Action.USE, block.id, 0, number, block.pool)

    def _external(self, size: str) -> None:
        self._taken += self._size(size)
        self._columns.row(Action.EXTERNAL, size=self._size(size))

    def _external_free(self, size: str) -> None:
        self._taken -= self._size(size)
        if self._taken < 0:
            raise self._error("other owners give back more than they took")
        self._columns.row(Action.EXTERNAL_FREE, size=self._size(size))

    def _lines(self) -> list[str]:
        try:
            text = self._source.data.decode("ascii")
        except UnicodeDecodeError as error:
            raise self._source.error(f"byte {error.start}", "is not ASCII") from None
        # Only line feeds end lines (with a carriage return where Windows wrote them): names may hold other separators.
        return text.replace("\r\n", "\n").removesuffix("\n").split("\n")

    def _header(self, lines: list[str]) -> dict[str, str]:
        if lines[0] != f"{_MAGIC} {_VERSION}":
            self._line = 1
            raise self._error(f"'{lines[0][:60]}' is not '{_MAGIC} {_VERSION}', the version that MOVie reads")
        header: dict[str, str] = {}
        key = ""
        self._line = 1
        for line in lines[1:]:
            if not line.startswith("#"):
                break
            self._line += 1
            if line.startswith("#   ") and key:
                header[key] = f"{header[key]} {line[4:]}".lstrip()
            elif match := _HEADER.fullmatch(line):
                key = match[1]
                if key in header:
                    raise self._error(f"a second '{key}'")
                header[key] = match[2]
            else:
                raise self._error("is not '# key: text' and continues none")
        return header

    def read(self) -> Trace:
        lines = self._lines()
        header = self._header(lines)
        rest = iter(lines[self._line :])

        def next_fields() -> list[str] | None:
            self._line += 1
            line = next(rest, None)
            return None if line is None else line.split(" ")

        fields = next_fields()
        if fields is None or fields[0] != "capacity" or len(fields) != 2:
            raise self._error("'capacity BYTES' or 'capacity none' is missing after the header")
        capacity = None if fields[1] == "none" else self._size(fields[1])
        fields = next_fields()
        split_limit = None
        if fields is not None and fields[0] == "split_limit" and len(fields) == 2:
            split_limit = self._size(fields[1])
            fields = next_fields()
        while fields is not None:
            count, operation = self._operations.get(fields[0], (-1, None))
            if operation is None:
                raise self._error(f"'{fields[0][:60]}' is not an operation")
            if len(fields) - 1 != count:
                raise self._error(f"'{fields[0]}' takes {count} fields, separated by one blank, not {len(fields) - 1}")
            operation(*fields[1:])
            fields = next_fields()

        columns = self._columns
        rows = len(columns.action)
        return Trace(
            action=np.array(columns.action, dtype=np.uint8),
            id=np.array(columns.id, dtype=np.int64),
            bytes=np.array(columns.bytes, dtype=np.int64),
            stream=np.array(columns.stream, dtype=np.int64),
            pool=np.array(columns.pool, dtype=np.int64),
            address=np.zeros(rows, dtype=np.uint64),
            time_us=np.zeros(rows, dtype=np.int64),
            phase=np.full(rows, -1, dtype=np.int32),
            pools=(DEFAULT_POOL, *(str(number) for number in list(self._pools)[1:])),
            path=self._source.path,
            format="case",
            header=header,
            capacity=capacity,
            split_limit=split_limit,
            completions_recorded=False,
        )


def _read(source: Source) -> list[Trace]:
    return [_Reader(source).read()]


FORMAT = Format("text case", lambda head: head.startswith(_MAGIC.encode()), _read)


def write_case(trace: Trace, path: str | Path) -> None:
    """Writes a trace as a text case. A trace that was read from a case reads back the same.

    The format is smaller than the model, and this is what becomes of the rest: start blocks become allocations before
    everything else (pending ones are freed there); a free that completed later in the recording becomes a `use` on a
    stream of its own and a `free`, so it is pending, but when it completed is lost; addresses, times, marks, segments,
    oom, snapshot and release_pool rows and the names of pools are left out.

    Raises TraceError if the file cannot be written, or the header is none that a case can have; nothing is left then.
    """
    for key, text in trace.header.items():
        match = _HEADER.fullmatch(f"# {key}: {text}")
        if match is None or match[1] != key or text != " ".join(text.split()):
            raise TraceError(path, "", f"cannot be written: a text case has no header {f'{key}: {text}'!r}")
    with whole_file(path) as file:
        file.writelines(f"{line}\n".encode("ascii") for line in _case_lines(trace))


def _case_lines(trace: Trace) -> Iterator[str]:
    yield f"{_MAGIC} {_VERSION}"
    header = trace.header or {"this file": f"converted from a {trace.format or 'trace'}, device {trace.device}"}
    for key, text in header.items():
        yield from textwrap.wrap(
            f"# {key}: {text}",
            _WIDTH,
            subsequent_indent="#   ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    yield f"capacity {'none' if trace.capacity is None else trace.capacity}"
    if trace.split_limit is not None:
        yield f"split_limit {trace.split_limit}"
    yield from _operations(trace)


def _pool_numbers(trace: Trace) -> list[str]:
    names = trace.pools[1:]
    if all(name.isascii() and name.isdigit() and name != "0" for name in names):
        return ["0", *names]
    return [str(index) for index in range(len(trace.pools))]


def _operations(trace: Trace) -> Iterator[str]:
    pools = _pool_numbers(trace)
    streams = np.concatenate([trace.stream, trace.start.stream, [0]])
    unnamed = min(int(streams.max()), _STREAMS - 2) + 1  # works with blocks whose free completed late
    own = np.concatenate([trace.start.stream, trace.stream[trace.action == Action.ALLOC]]).tolist()
    used = np.zeros(trace.ids, dtype=bool).tolist()

    def alloc(block: int, size: int, stream: int, pool: int) -> str:
        return f"alloc b{block} {size} {stream} {pools[pool]}"

    def late_free(block: int) -> Iterable[str]:
        return (f"free b{block}",) if used[block] else (f"use b{block} {unnamed}", f"free b{block}")

    start = zip(*(c.tolist() for c in (trace.start.bytes, trace.start.stream, trace.start.pool)), strict=True)
    for block, (size, stream, pool) in enumerate(start):
        yield alloc(block, size, stream, pool)
    for block in np.flatnonzero(trace.start.pending).tolist():
        yield from late_free(block)

    completes = np.zeros(len(trace) + 1, dtype=bool)
    completes[:-1] = trace.action == Action.FREE_COMPLETED
    at_once = (completes[1:] & (np.append(trace.id[1:], -1) == trace.id)).tolist()
    columns = (trace.action, trace.id, trace.bytes, trace.stream, trace.pool)
    for row, (action, block, size, stream, pool) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        if action == Action.ALLOC:
            yield alloc(block, size, stream, pool)
        elif action == Action.FREE_REQUESTED:
            yield from (f"free b{block}",) if at_once[row] else late_free(block)
        elif action == Action.USE:
            used[block] = used[block] or stream != own[block]
            yield f"use b{block} {stream}"
        elif action in (Action.SYNC, Action.EMPTY_CACHE):
            yield Action(action).name.lower()
        elif action in (Action.EXTERNAL, Action.EXTERNAL_FREE):
            yield f"{Action(action).name.lower()} {size}"
