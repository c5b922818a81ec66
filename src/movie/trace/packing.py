"""How files are packed: gzip and xz, unpacked in bounded steps."""

import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

_XZ_MEMORY = 256 << 20  # bytes that unpacking may take; the strongest preset of xz takes 65 MiB


class Member(Protocol):
    """One of the packed pieces that a file is made of, most often its only one."""

    rest: bytes  # of what was given last: not taken in yet, or behind the member
    hungry: bool  # needs more bytes to go on
    ended: bool

    def unpack(self, packed: bytes, most: int) -> bytes:
        """At most `most` bytes of the content. Sets the attributes; the next call is to be given `rest` first."""


class _Gzip:
    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=31)
        self.rest, self.hungry, self.ended = b"", True, False

    def unpack(self, packed: bytes, most: int) -> bytes:
        chunk = self._stream.decompress(packed, most)
        self.ended = self._stream.eof
        self.rest = self._stream.unused_data if self.ended else self._stream.unconsumed_tail
        return chunk


class _Xz:
    def __init__(self) -> None:
        self._stream = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
        self.rest, self.hungry, self.ended = b"", True, False

    def unpack(self, packed: bytes, most: int) -> bytes:
        chunk = self._stream.decompress(packed, most)  # keeps what it has not unpacked
        self.ended = self._stream.eof
        self.rest = self._stream.unused_data if self.ended else b""
        self.hungry = self.ended or self._stream.needs_input
        return chunk


@dataclass(frozen=True)
class Packing:
    """`magic`: the first bytes of each such file. `member`: begins to unpack one. `errors`: what unpacking raises."""

    name: str
    magic: bytes
    member: Callable[[], Member]
    errors: tuple[type[Exception], ...]


PACKINGS = (
    Packing("gzip", b"\x1f\x8b", _Gzip, (zlib.error,)),
    Packing("xz", b"\xfd7zXZ\x00", _Xz, (lzma.LZMAError, EOFError)),
)
LONGEST_MAGIC = max(len(packing.magic) for packing in PACKINGS)
