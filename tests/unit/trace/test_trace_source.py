"""Files as they come: whole, packed, broken, none."""

import gzip
import lzma
import os
import zlib

import pytest

from movie.trace import Limits, TraceError, read_trace

CASE = b"# gpu-alloc-case 1\ncapacity none\nalloc a 512 0 0\nfree a\n"


def fails(path, limits=None):
    with pytest.raises(TraceError) as caught:
        read_trace(path, limits=limits)
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    assert str(path).encode("unicode_escape").decode()[:20] in text
    return text


@pytest.mark.parametrize(
    "content",
    [
        CASE,
        gzip.compress(CASE, mtime=0),
        gzip.compress(CASE[:30], mtime=0) + gzip.compress(CASE[30:], mtime=0),
        lzma.compress(CASE),
        lzma.compress(CASE[:30]) + lzma.compress(CASE[30:]),
    ],
)
@pytest.mark.parametrize("name", ["a.case", "a.pickle", "a", "a.parquet.gz"])
def test_content_counts_not_the_name(tmp_path, content, name):
    (tmp_path / name).write_bytes(content)
    [trace] = read_trace(tmp_path / name)
    assert len(trace) == 3


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (b"hello", "is of no known format; MOVie reads"),
        (b"(lp0\n.", "is of no known format"),
        (bytes(16), "is of no known format"),
        (gzip.compress(CASE, mtime=0)[:-3], "ends early"),
        (gzip.compress(CASE, mtime=0)[:20], "ends early"),
        (gzip.compress(CASE, mtime=0)[:-6] + b"\0\0\0\0\0\0", "is broken"),
        (gzip.compress(CASE, mtime=0) + b"garbage", "is broken"),
        (b"\x1f\x8b", "ends early"),
        (lzma.compress(b""), "is empty"),
        (lzma.compress(CASE)[:-3], "ends early"),
        (lzma.compress(CASE)[:20], "ends early"),
        (lzma.compress(CASE)[:-6] + bytes(6), "xz: is broken"),
        (lzma.compress(CASE) + b"garbage" * 2, "xz: is broken"),
        (b"\xfd7zXZ\x00", "ends early"),
    ],
)
def test_what_cannot_be_a_trace(tmp_path, content, what):
    path = tmp_path / "a"
    path.write_bytes(content)
    assert what in fails(path)


@pytest.mark.parametrize("packed", [gzip.compress(CASE, mtime=0), lzma.compress(CASE)])
def test_padding_after_the_packed_is_no_fault(tmp_path, packed):
    (tmp_path / "a").write_bytes(packed + b"\0" * 1000)
    assert len(read_trace(tmp_path / "a")) == 1


def test_no_file_a_directory_an_odd_name(tmp_path):
    assert "No such file" in fails(tmp_path / "none")
    assert "directory" in fails(tmp_path)
    assert "null byte" in fails("\0.pickle")
    (tmp_path / "not\na line").write_bytes(b"")
    assert "is empty" in fails(tmp_path / "not\na line")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_no_permission(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(CASE)
    path.chmod(0)
    assert "Permission denied" in fails(path)


def test_gzip_bomb(tmp_path):
    packer = zlib.compressobj(9, wbits=31)
    body = packer.compress(b"# gpu-alloc-case 1\n") + b"".join(packer.compress(bytes(1 << 20)) for _ in range(80))
    path = tmp_path / "bomb.gz"
    path.write_bytes(body + packer.flush())
    assert path.stat().st_size < 1 << 20
    assert "grows more than 400 times" in fails(path)
    assert "larger than 1048576 bytes" in fails(path, Limits(size=1 << 20))


def test_xz_bomb(tmp_path):
    path = tmp_path / "bomb.xz"
    path.write_bytes(lzma.compress(b"# gpu-alloc-case 1\n" + bytes(80 << 20), preset=1))
    assert "xz: grows more than 400 times" in fails(path)
    assert "larger than 1048576 bytes" in fails(path, Limits(size=1 << 20))


def test_xz_that_wants_too_much_memory(tmp_path):
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29}]
    path = tmp_path / "greedy.xz"
    path.write_bytes(lzma.compress(CASE, filters=filters))
    assert "xz: is broken: Memory usage limit" in fails(path)


def test_content_of_many_chunks(tmp_path):
    """More than one step of unpacking, and of reading."""
    lines = b"".join(b"alloc b%d %d 0 0\n" % (i, 512 + i * i % 100_003) for i in range(120_000))
    for packed in (gzip.compress(CASE + lines), lzma.compress(CASE + lines, preset=0)):
        (tmp_path / "a").write_bytes(packed)
        [trace] = read_trace(tmp_path / "a")
        assert trace.allocations == 120_001


def test_a_file_of_nothing_known_is_refused_before_it_is_read_whole(tmp_path):
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert "no known format" in fails(path)
