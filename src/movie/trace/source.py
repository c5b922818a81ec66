"""The bytes of a trace file: read up to a limit, taken out of gzip or xz, refused before they can do harm."""

import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from movie.trace.errors import TraceError
from movie.trace.packing import LONGEST_MAGIC, PACKINGS, Packing

_CHUNK = 1 << 20
HEAD = 4096  # bytes by which formats are recognised


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
    """A file's content. `data` is unpacked; `packed` names what it was in: `gzip`, `xz`, or nothing."""

    path: str
    data: bytes
    packed: str
    limits: Limits

    def error(self, where: str, what: str) -> TraceError:
        return TraceError(self.path, where, what)


def read_source(path: str | Path, limits: Limits, recognises: Callable[[bytes], object]) -> Source:
    """Reads a file. `recognises` sees the first (unpacked) bytes before the rest is read, and raises if it knows none.

    Raises TraceError for what cannot be read, is empty, broken gzip or xz, or larger than the limits.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            head = file.read(LONGEST_MAGIC)
            packing = next((packing for packing in PACKINGS if head.startswith(packing.magic)), None)
            chunks = _unpacked(name, file, head, packing, limits) if packing else _plain(file, head)
            data = _collect(name, chunks, limits, recognises)
            return Source(name, data, packing.name if packing else "", limits)
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


def _unpacked(name: str, file: io.BufferedReader, head: bytes, packing: Packing, limits: Limits) -> Iterator[bytes]:
    """The content of a packed file, of one or more members, a chunk at a time."""
    read = written = 0
    packed = head + file.read(_CHUNK)
    member = packing.member()
    while packed:
        read += len(packed)
        while packed or not member.hungry:
            try:
                chunk = member.unpack(packed, _CHUNK)
            except packing.errors as error:
                raise TraceError(name, packing.name, f"is broken: {error}") from None
            written += len(chunk)
            if written > limits.free_growth and written > limits.growth * read:
                raise TraceError(name, packing.name, f"grows more than {limits.growth} times: not a trace")
            yield chunk
            packed = member.rest
            if member.ended:
                packed = packed.lstrip(b"\0")  # padding between members is allowed
                if packed:
                    member = packing.member()
        packed = file.read(_CHUNK)
        if packed and member.ended:
            packed = packed.lstrip(b"\0")
            member = packing.member()
    if not member.ended:
        raise TraceError(name, packing.name, "ends early")
