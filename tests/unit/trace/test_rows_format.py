"""Plain rows of four 64-bit integers, as bytes or packed."""

import gzip
import lzma

import numpy as np
import pytest
from small_snapshots import MIB, names

from movie.trace import TraceError, read_trace


def pack(*rows):
    return np.array(rows, dtype="<i8").tobytes()


def parse(tmp_path, content):
    path = tmp_path / "a.bin"
    path.write_bytes(content)
    [trace] = read_trace(path)
    return trace


RUN = pack((1, 7, MIB, 0), (1, 9, 512, 32), (0, 7, MIB, 0), (1, 7, 3 * MIB, 0), (0, 9, 512, 32))


@pytest.mark.parametrize("packed", [bytes, gzip.compress, lzma.compress])
def test_rows(tmp_path, packed):
    trace = parse(tmp_path, packed(RUN))
    assert names(trace) == [
        *("alloc 0", "alloc 1", "free_requested 0", "free_completed 0"),
        *("alloc 2", "free_requested 1", "free_completed 1"),
    ]
    assert trace.bytes.tolist() == [MIB, 512, MIB, MIB, 3 * MIB, 512, 512]
    assert trace.stream.tolist() == [0, 32, 0, 0, 0, 32, 32]
    assert (trace.format, trace.complete, trace.completions_recorded) == ("plain rows", True, False)
    assert trace.warnings == ()


def test_a_free_on_another_stream_is_a_use_and_a_free(tmp_path):
    trace = parse(tmp_path, pack((1, 1, 512, 0), (0, 1, 512, 32)))
    assert names(trace) == ["alloc 0", "use 0", "free_requested 0"]
    assert trace.stream.tolist() == [0, 32, 0]


def test_frees_of_unknown_blocks_are_left_out(tmp_path):
    for content in (pack((0, 5, 64, 0), (1, 1, 512, 0)), pack((1, 1, 512, 0), (0, 5, 64, 0))):
        trace = parse(tmp_path, content)
        assert names(trace) == ["alloc 0"]
        assert not trace.complete
        assert trace.warnings == ("1 frees of blocks that were allocated before the log began were left out",)


def test_allocations_of_nothing_are_left_out(tmp_path):
    trace = parse(tmp_path, pack((1, 1, 0, 0), (1, 2, 512, 0), (0, 1, 0, 0)))
    assert names(trace) == ["alloc 0"]
    assert trace.complete
    assert trace.warnings == ("1 allocations of no bytes were left out",)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (RUN[:-1], "row 4: ends after 31 of 32 bytes"),
        (RUN[:33], "row 1: ends after 1 of 32 bytes"),
        (pack((1, 1, 512, 0), (2, 1, 512, 0)), "row 1: begins with neither"),
        (pack((1, 1, 512, 0), (1, 2, -1, 0)), "row 1: has a size"),
        (pack((1, 1, 512, 0), (1, 2, 2**62 + 1, 0)), "row 1: has a size"),
        (pack((1, 1, 512, 0), (1, 1, 512, 0)), "row 1: allocates a block that was allocated already"),
        (pack((1, 1, 512, 0), (0, 1, 513, 0)), "row 1: frees 513 bytes of a block of 512"),
        (pack(*((1, i, 2**62, 0) for i in range(5))), "add up to more than 2"),
        (bytes(64), "no known format"),
        (RUN[:31], "no known format"),
        (pack((1, 1, -1, 0)), "no known format"),
    ],
)
def test_what_rows_cannot_be(tmp_path, content, what):
    with pytest.raises(TraceError, match=what) as caught:
        parse(tmp_path, content)
    assert str(caught.value).startswith(f"{tmp_path / 'a.bin'}: ")
