"""Sizes of memory as people write them: `80GiB`, `1.5 GB`, `512 MiB`."""

import re
from fractions import Fraction

from movie.errors import InputError

LARGEST = 2**62  # far above any card, and small enough that sums of a few stay within 64 bits

# As GNU tools have it: KiB and K are 1024 bytes, KB is 1000.
_UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgtp", start=1):
    _UNITS[_letter] = _UNITS[f"{_letter}ib"] = 1024**_power
    _UNITS[f"{_letter}b"] = 1000**_power

_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-z]*)\s*", re.ASCII)


def parse_size(text: str | int, *, what: str = "size") -> int:
    """Bytes of a size such as `80GiB`, `1.5 GB`, `2MiB`, `1024` or the number itself, rounded to a whole byte.

    KiB, MiB, GiB, TiB, PiB and the bare letters are powers of 1024; KB, MB, GB, TB, PB are powers of 1000; upper and
    lower case mean the same. `what` names the thing in the error.

    Raises InputError for anything else, and for sizes that are negative or above 2**62.
    """
    if isinstance(text, int):
        size = text
    else:
        match = _SIZE.fullmatch(text)
        unit = _UNITS.get(match[2].lower()) if match else None
        if match is None or unit is None:
            raise InputError(
                f"{what} {text!r} is not a size: write a number and a unit, such as 80GiB, 1.5GB or 512MiB"
            )
        size = round(Fraction(match[1].rstrip(".")) * unit)
    if not 0 <= size <= LARGEST:
        raise InputError(f"{what} {text!r} is out of range: sizes go from 0 to {format_size(LARGEST)}")
    return size


def looks_like_size(text: str) -> bool:
    """Whether the text is a number followed by a unit of size (a bare number does not count)."""
    match = _SIZE.fullmatch(text)
    return match is not None and match[2] != "" and match[2].lower() in _UNITS


def format_size(size: int) -> str:
    """The size in the largest binary unit that leaves at least 1: `38.75 GiB`, `2 MiB`, `0 B`.

    Two decimals, none where the figure is whole. A negative size (a difference) keeps its sign.
    """
    if size < 0:
        return f"-{format_size(-size)}"
    if size < 1024:
        return f"{size} B"
    for power, unit in enumerate(("KiB", "MiB", "GiB", "TiB", "PiB"), start=1):
        scale = 1024**power
        # 1023.999 KiB would print as 1024.00: the next unit says it better.
        if round(size / scale, 2) < 1024 or unit == "PiB":
            break
    return f"{size // scale} {unit}" if size % scale == 0 else f"{size / scale:.2f} {unit}"
