"""Parquet: nothing changes on the way through it, and a file of a stranger is looked at closely."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_snapshots import MIB, alloc, event, free, read, segment, snapshot

from movie.trace import TraceError, read_trace, write_trace
from movie.trace.model import same
from movie.trace.parquet import write_parquet

BASE = 1 << 40


@pytest.fixture
def trace(tmp_path):
    return read(
        tmp_path,
        snapshot(
            [
                *free(BASE, 5 * MIB + 1, time_us=3),
                alloc(BASE, 1000, time_us=5, pool_id=(1, 0)),
                event("segment_map", BASE + 8 * MIB, 2 * MIB, time_us=6),
                alloc(BASE + MIB, 99, time_us=6),
                event("free_requested", BASE + MIB, 99, time_us=7),
                event("snapshot", 0, 17, time_us=9),
            ],
            [
                segment(BASE, 6 * MIB, [(0, MIB, 1000, "active_allocated"), (MIB, 512, 99, "active_pending_free")]),
                segment(BASE + 8 * MIB, 2 * MIB, [], is_expandable=True, segment_type="small"),
            ],
            allocator_settings={"max_split_size": -1, "garbage_collection_threshold": 0.5},
            external_annotations=[{"stage": "START", "name": "step 1", "device": 0, "time_us": 4}],
        ),
    )


def test_exact(tmp_path, trace):
    write_trace(trace, tmp_path / "b.parquet")
    [again] = read_trace(tmp_path / "b.parquet")
    assert same(trace, again)
    assert again.format == "movie Parquet"


def test_without_times(tmp_path, trace):
    write_parquet(trace, tmp_path / "b.parquet", times=False)
    [again] = read_trace(tmp_path / "b.parquet")
    assert trace.time_us.any()
    assert not again.time_us.any()
    assert np.array_equal(trace.address, again.address)


def rewrite(path, columns=None, facts=None, drop=False):
    """The file with other columns or other facts."""
    table = pq.read_table(path)
    meta = json.loads(table.schema.metadata[b"movie-trace"]) | (facts or {})
    for name, change in (columns or {}).items():
        index = table.schema.get_field_index(name)
        table = table.set_column(index, table.schema.field(index), pa.array(change(table.column(name).to_numpy())))
    pq.write_table(table.replace_schema_metadata(None if drop else {b"movie-trace": json.dumps(meta)}), path)


def at(index, value):
    def change(column):
        column = column.copy()
        column[index] = value
        return column

    return change


@pytest.mark.parametrize(
    ("columns", "facts", "what"),
    [
        ({}, {"version": 2}, "layout version 2, this MOVie reads version 1"),
        ({}, {"version": None}, "layout version None"),
        ({}, {"pools": []}, "metadata: has something else where texts belong"),
        ({}, {"pools": [1, 2]}, "metadata: has something else where texts belong"),
        ({}, {"pools": ["default"]}, "no such pool"),
        ({}, {"phases": []}, "not a phase"),
        ({}, {"devices": True}, "metadata.devices: is missing"),
        ({}, {"capacity": -5}, "metadata.capacity: is missing"),
        ({}, {"complete": 1}, "metadata.complete: is missing"),
        ({"section": at(0, 2)}, {}, "section: is not 0s, then 1s, then 2s"),
        ({"section": at(-1, 3)}, {}, "section: is not 0s, then 1s, then 2s"),
        ({"action": at(-1, 77)}, {}, r"action\[7\]: no such action"),
        ({"bytes": at(0, -1)}, {}, r"bytes\[0\]: not a size"),
        ({"bytes": at(0, 0)}, {}, r"start.bytes\[0\]: a block of nothing"),
        ({"id": at(-2, 99)}, {}, "no such block"),
        ({"stream": lambda c: c.astype(np.int32)}, {}, None),
    ],
)
def test_what_is_no_trace(tmp_path, trace, columns, facts, what):
    path = tmp_path / "b.parquet"
    write_trace(trace, path)
    if what is None:
        table = pq.read_table(path)
        index = table.schema.get_field_index("stream")
        other = table.set_column(index, "stream", table.column("stream").cast(pa.int32()))
        pq.write_table(other.replace_schema_metadata(table.schema.metadata), path)
        what = "schema: has other columns or types"
    else:
        rewrite(path, columns, facts)
    with pytest.raises(TraceError, match=what):
        read_trace(path)


def test_other_parquet(tmp_path, trace):
    path = tmp_path / "b.parquet"
    write_trace(trace, path)
    rewrite(path, drop=True)
    with pytest.raises(TraceError, match="has no 'movie-trace': a Parquet file, but not a trace"):
        read_trace(path)
    path.write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    with pytest.raises(TraceError, match="Parquet: cannot be read"):
        read_trace(path)


def test_nothing_is_left_of_what_cannot_be_written(tmp_path, trace):
    for name, what in (("b.xyz", "the name ends in none of"), ("none/b.parquet", "No such file")):
        with pytest.raises(TraceError, match=what):
            write_trace(trace, tmp_path / name)
    with pytest.raises(TraceError, match="it holds one device, not 2"):
        write_trace([trace, trace], tmp_path / "b.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["a.pickle"]
