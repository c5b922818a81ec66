"""Traces in Parquet: small, quick to load, and readable by everything that reads Parquet.

One table holds a trace. Its column `section` says what a line is:

| column  | 0: block before the first row | 1: segment before the first row | 2: row of the trace           |
|---------|-------------------------------|---------------------------------|-------------------------------|
| action  | 0                             | 0                               | `movie.trace.Action`          |
| id      | its position                  | -1                              | of the block, -1 for none     |
| bytes   | as asked for                  | of the segment                  | as asked for, or of a segment |
| size    | of the block                  | 0                               | 0                             |
| stream, pool, address | of the block    | of the segment                  | of the row                    |
| time_us, phase | 0, -1                  | 0, -1                           | of the row                    |
| flags   | 1: pending                    | 1: small, 2: expandable         | 0                             |

Lines are ordered by section, and within a section as in the model. Rows that free a block hold 0 for bytes, stream,
pool and address: they are those of its allocation. Everything else is JSON under the key `movie-trace` of the file's
metadata, with the `version` of this layout, 1.
"""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from movie.trace.format import Format
from movie.trace.model import LARGEST, Action, Segments, StartBlocks, Trace, with_block_values
from movie.trace.output import whole_file
from movie.trace.source import Source

_KEY = b"movie-trace"
_VERSION = 1
_START, _SEGMENT, _ROW = 0, 1, 2
_PENDING = 1
_SMALL, _EXPANDABLE = 1, 2
_ROW_BYTES = 64  # of memory, for the columns below
_SCHEMA = pa.schema(
    [
        pa.field("section", pa.uint8(), nullable=False),
        pa.field("action", pa.uint8(), nullable=False),
        pa.field("id", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("stream", pa.int64(), nullable=False),
        pa.field("pool", pa.int64(), nullable=False),
        pa.field("address", pa.uint64(), nullable=False),
        pa.field("time_us", pa.int64(), nullable=False),
        pa.field("phase", pa.int32(), nullable=False),
        pa.field("flags", pa.uint8(), nullable=False),
    ]
)
_DELTA = ("id", "time_us")  # columns that grow from row to row; values of the others come again and again
_LAYOUT: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 19,
    "use_dictionary": [name for name in _SCHEMA.names if name not in _DELTA],
    "column_encoding": dict.fromkeys(_DELTA, "DELTA_BINARY_PACKED"),
    "write_page_checksum": True,
    "data_page_size": 8 << 20,
    "dictionary_pagesize_limit": 8 << 20,
    "row_group_size": 1 << 22,
}
_OF_BLOCK = ("bytes", "stream", "pool", "address")
_FACTS: dict[str, type | tuple[type, ...]] = {
    "device": int,
    "devices": int,
    "start_reserved": int,
    "end_reserved": int,
    "pools": list,
    "phases": list,
    "settings": dict,
    "header": dict,
    "capacity": (int, type(None)),
    "split_limit": (int, type(None)),
    "completions_recorded": bool,
    "complete": bool,
    "warnings": list,
}
_LISTS_OF_TEXT = ("pools", "phases", "warnings")


def write_parquet(trace: Trace, path: str | Path, *, times: bool = True) -> None:
    """Writes a trace; reading the file gives the same trace (`path` and `format` apart).

    `times=False` leaves the times of rows out, which are a large part of most files. Raises TraceError if the file
    cannot be written; nothing is left then.
    """
    facts = {name: getattr(trace, name) for name in _FACTS}
    meta = json.dumps({"version": _VERSION, **facts}, default=dict)
    table = pa.Table.from_arrays(
        [pa.array(column, type=field.type) for field, column in zip(_SCHEMA, _lines(trace, times), strict=True)],
        schema=_SCHEMA.with_metadata({_KEY: meta.encode()}),
    )
    with whole_file(path) as file:
        pq.write_table(table, file, **_LAYOUT)


def _lines(trace: Trace, times: bool) -> list[NDArray[Any]]:
    frees = (trace.action == Action.FREE_REQUESTED) | (trace.action == Action.FREE_COMPLETED)
    start, segments = trace.start, trace.segments
    counts = (len(start), len(segments), len(trace))

    def constant(section: int, value: int) -> NDArray[Any]:
        return np.full(counts[section], value, dtype=np.int64)

    parts: dict[str, tuple[Any, Any, Any]] = {
        "section": (constant(_START, _START), constant(_SEGMENT, _SEGMENT), constant(_ROW, _ROW)),
        "action": (constant(_START, 0), constant(_SEGMENT, 0), trace.action),
        "id": (np.arange(len(start)), constant(_SEGMENT, -1), trace.id),
        "size": (start.size, constant(_SEGMENT, 0), constant(_ROW, 0)),
        "time_us": (constant(_START, 0), constant(_SEGMENT, 0), trace.time_us if times else constant(_ROW, 0)),
        "phase": (constant(_START, -1), constant(_SEGMENT, -1), trace.phase),
        "flags": (
            start.pending * _PENDING,
            segments.small * _SMALL + segments.expandable * _EXPANDABLE,
            constant(_ROW, 0),
        ),
    }
    for name in _OF_BLOCK:
        column = getattr(trace, name)
        segment = segments.size if name == "bytes" else getattr(segments, name)
        parts[name] = (getattr(start, name), segment, np.where(frees, np.zeros((), column.dtype), column))
    # The types of the schema hold every value of the model, so nothing is lost in the casts. Arrow and numpy
    # name them alike.
    return [np.concatenate([part.astype(str(f.type)) for part in parts[f.name]]) for f in _SCHEMA]


def _read(source: Source) -> list[Trace]:
    table, facts = _load(source)
    columns = {name: table.column(name).to_numpy() for name in _SCHEMA.names}
    section = columns["section"]
    bounds = np.searchsorted(section, (_START, _SEGMENT, _ROW, _ROW + 1)).tolist()
    if (section[1:] < section[:-1]).any() or bounds[-1] != len(section):
        raise source.error("section", "is not 0s, then 1s, then 2s")
    start, segments, rows = (
        {name: column[low:high].copy() for name, column in columns.items()} for low, high in pairwise(bounds)
    )
    try:
        trace = Trace(
            **{name: rows[name] for name in ("action", "id", *_OF_BLOCK, "time_us", "phase")},
            start=StartBlocks(
                **{name: start[name] for name in (*_OF_BLOCK, "size")}, pending=(start["flags"] & _PENDING) != 0
            ),
            segments=Segments(
                size=segments["bytes"],
                **{name: segments[name] for name in ("address", "stream", "pool")},
                small=(segments["flags"] & _SMALL) != 0,
                expandable=(segments["flags"] & _EXPANDABLE) != 0,
            ),
            path=source.path,
            format="movie Parquet",
            **facts,
        )
        return [with_block_values(trace)]
    except ValueError as error:
        raise source.error("", f"is not a consistent trace: {error}") from None


def _load(source: Source) -> tuple[pa.Table, dict[str, Any]]:
    try:
        file = pq.ParquetFile(pa.BufferReader(source.data), page_checksum_verification=True)
        metadata = file.metadata
        facts = _facts(source, (file.schema_arrow.metadata or {}).get(_KEY))
        if file.schema_arrow.remove_metadata() != _SCHEMA:
            raise source.error("schema", "has other columns or types than a trace of version 1")
        size, limits = metadata.num_rows * _ROW_BYTES, source.limits
        if size > limits.size or size > max(limits.free_growth, limits.growth * len(source.data)):
            raise source.error("Parquet", f"has {metadata.num_rows} rows, too many for a file of this size")
        table = file.read(use_threads=False)
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, RuntimeError, MemoryError) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise source.error("Parquet", f"cannot be read: {lines[0]}") from None
    if len(table) != metadata.num_rows or any(column.null_count for column in table.columns):
        raise source.error("Parquet", "has missing values")
    return table, facts


def _facts(source: Source, meta: bytes | None) -> dict[str, Any]:
    if meta is None:
        raise source.error("metadata", f"has no '{_KEY.decode()}': a Parquet file, but not a trace")
    try:
        facts = json.loads(meta)
    except (ValueError, RecursionError):
        raise source.error("metadata", f"'{_KEY.decode()}' is not JSON") from None
    if type(facts) is not dict or facts.get("version") != _VERSION:
        found = facts.get("version") if type(facts) is dict else None
        raise source.error("metadata", f"layout version {found!r}, this MOVie reads version {_VERSION}")
    for name, kind in _FACTS.items():
        kinds = kind if isinstance(kind, tuple) else (kind,)
        value = facts.get(name)
        if type(value) not in kinds or (type(value) is int and not 0 <= value <= LARGEST):
            raise source.error(f"metadata.{name}", "is missing or not what a trace has there")
    texts = [text for name in _LISTS_OF_TEXT for text in facts[name]] + list(facts["header"].values())
    if any(type(text) is not str for text in texts) or not facts["pools"]:
        raise source.error("metadata", "has something else where texts belong")
    return {name: tuple(facts[name]) if name in _LISTS_OF_TEXT else facts[name] for name in _FACTS}


FORMAT = Format("Parquet of MOVie", lambda head: head.startswith(b"PAR1"), _read)
