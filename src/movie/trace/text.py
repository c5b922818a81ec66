"""What readers of text share: lines, and the numbers in them."""

import re

from movie.trace.source import Source

ADDRESSES = 2**64
_INTEGER = re.compile(r"-?[0-9]{1,20}|0x[0-9a-fA-F]{1,16}", re.ASCII)
_SHOWN = 60  # characters of a wrong text that an error shows


def lines_of(source: Source) -> list[str]:
    """The lines, without their ends (a line feed, with a carriage return where Windows wrote it).

    Raises TraceError, with the byte, for what is not UTF-8.
    """
    try:
        text = source.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise source.error(f"byte {error.start}", "is not UTF-8") from None
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def first_line(head: bytes) -> str:
    """The first line of a file's first bytes that is neither blank nor begins with `#`; empty if there is none."""
    text = head.decode("utf-8-sig", "replace")
    lines = (line.strip() for line in text.split("\n"))
    return next((line for line in lines if line and not line.startswith("#")), "")


def integer(source: Source, line: int, what: str, text: str, low: int, high: int) -> int:
    """A decimal or hexadecimal (`0x...`) number from `low` to `high`. Raises TraceError, with the line, for others."""
    if not _INTEGER.fullmatch(text):
        raise source.error(f"line {line}", f"{what} '{text[:_SHOWN]}' is not a number")
    value = int(text, 16) if text.startswith("0x") else int(text)
    if not low <= value <= high:
        raise source.error(f"line {line}", f"{what} {text} is not from {low} to {high}")
    return value


def pointer(source: Source, line: int, what: str, text: str) -> int:
    """An address or a handle, as C prints it: `0x...`, `(nil)` or a number; from 0 to 2**64 - 1."""
    return 0 if text in ("(nil)", "nullptr") else integer(source, line, what, text, 0, ADDRESSES - 1)


def signed(handle: int) -> int:
    """A 64-bit handle as the signed number that a column of streams holds."""
    return handle - ADDRESSES if handle >= ADDRESSES // 2 else handle
