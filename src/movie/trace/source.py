"""The bytes of a trace file: read up to a limit, taken out of gzip, refused before they can do harm."""

import io
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from movie.trace.errors import TraceError

_CHUNK = 1 << 20
HEAD = 4096  # bytes by which formats are recognised
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Limits:
    """What a file of a stranger may cost. Sizes in bytes.

    A compressed file may grow to `size`, and beyond `free_growth` to no more than `growth` times what it is on disk.
    `depth`: containers inside each other. `items`: values in all.
    """

    size: int = 4 << 30
    free_growth: int = 64 << 20
    growth: int = 400
    depth: int = 64
    items: int = 1 << 31


@dataclass(frozen=True)
class Source:
    """A file's content. `data` is unpacked; `packed` says whether it was in gzip."""

    path: str
    data: bytes
    packed: bool
    limits: Limits

    def error(self, where: str, what: str) -> TraceError:
        return TraceError(self.path, where, what)


def read_source(path: str | Path, limits: Limits, recognises: Callable[[bytes], object]) -> Source:
    """Reads a file. `recognises` sees the first (unpacked) bytes before the rest is read, and raises if it knows none.

    Raises TraceError for what cannot be read, is empty, broken gzip, or larger than the limits.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            head = file.read(len(_GZIP))
            packed = head == _GZIP
            chunks = _unpacked(name, file, head, limits) if packed else _plain(file, head)
            return Source(name, _collect(name, chunks, limits, recognises), packed, limits)
    except (OSError, ValueError) as error:  # ValueError: a path with a null byte
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TraceError(name, "", f"cannot be read: {reason}") from None


def _plain(file: io.BufferedReader, head: bytes) -> Iterator[bytes]:
    yield head
    while chunk := file.read(_CHUNK):
        yield chunk


def _collect(name: str, chunks: Iterator[bytes], limits: Limits, recognises: Callable[[bytes], object]) -> bytes:
    buffer = io.BytesIO()
    known = False
    for chunk in chunks:
        buffer.write(chunk)
        if not known and buffer.tell() >= HEAD:
            recognises(bytes(buffer.getbuffer()[:HEAD]))
            known = True
        if buffer.tell() > limits.size:
            raise TraceError(name, "", f"is larger than {limits.size} bytes, unpacked")
    if not buffer.tell():
        raise TraceError(name, "", "is empty")
    data = buffer.getvalue()
    if not known:
        recognises(data)
    return data


def _unpacked(name: str, file: io.BufferedReader, head: bytes, limits: Limits) -> Iterator[bytes]:
    """The content of a gzip file, of one or more members, a chunk at a time."""
    read = written = 0
    packed = head + file.read(_CHUNK)
    member = zlib.decompressobj(wbits=31)
    while packed:
        read += len(packed)
        while packed:
            try:
                chunk = member.decompress(packed, _CHUNK)
            except zlib.error as error:
                raise TraceError(name, "gzip", f"is broken: {error}") from None
            written += len(chunk)
            if written > limits.free_growth and written > limits.growth * read:
                raise TraceError(name, "gzip", f"grows more than {limits.growth} times: not a trace")
            yield chunk
            if member.eof:
                packed = member.unused_data.lstrip(b"\0")  # padding between members is allowed
                if packed:
                    member = zlib.decompressobj(wbits=31)
            else:
                packed = member.unconsumed_tail
        packed = file.read(_CHUNK)
        if packed and member.eof:
            packed = packed.lstrip(b"\0")
            member = zlib.decompressobj(wbits=31)
    if not member.eof:
        raise TraceError(name, "gzip", "ends early")
