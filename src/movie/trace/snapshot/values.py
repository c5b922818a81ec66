"""Typed access to the plain data of a stranger: every fault is an error that names its place."""

from typing import Any

from movie.trace.errors import TraceError
from movie.trace.model import LARGEST

ADDRESSES = 2**63  # above any device address
_STREAMS = 2**63


class Place:
    """A value inside a file and the way to it, such as `segments[3].blocks[0].size`."""

    __slots__ = ("path", "value", "where")

    def __init__(self, path: str, where: str, value: Any) -> None:
        self.path = path
        self.where = where
        self.value = value

    def error(self, what: str) -> TraceError:
        return TraceError(self.path, self.where, what)

    def is_not(self, wanted: str) -> TraceError:
        return self.error(f"is {describe(self.value)}, not {wanted}")

    def as_dict(self) -> dict[str, Any]:
        if type(self.value) is not dict:
            raise self.is_not("a dict")
        return self.value

    def as_list(self) -> list[Any]:
        if type(self.value) is not list:
            raise self.is_not("a list")
        return self.value

    def as_text(self) -> str:
        if type(self.value) is not str:
            raise self.is_not("a string")
        return self.value

    def as_flag(self) -> bool:
        if type(self.value) is not bool:
            raise self.is_not("true or false")
        return self.value

    def integer(self, low: int, high: int) -> int:
        if type(self.value) is not int:
            raise self.is_not("an integer")
        if not low <= self.value <= high:
            raise self.is_not(f"from {low} to {high}")
        return self.value

    def size(self, least: int = 0) -> int:
        if type(self.value) is not int:
            raise self.is_not("an integer")
        if not least <= self.value <= LARGEST:
            raise self.is_not(f"a size from {least} to 2**62 bytes")
        return self.value

    def address(self) -> int:
        return self.integer(0, ADDRESSES - 1)

    def stream(self) -> int:
        return self.integer(-_STREAMS, _STREAMS - 1)

    def pool_id(self) -> tuple[int, int]:
        """A pair of numbers: a tuple in pickles, a list in JSON."""
        pair = self.value
        if type(pair) not in (tuple, list) or len(pair) != 2 or type(pair[0]) is not int or type(pair[1]) is not int:
            raise self.is_not("a pair of integers")
        return pair[0], pair[1]

    def item(self, index: int) -> "Place":
        return Place(self.path, f"{self.where}[{index}]", self.value[index])

    def field(self, name: str) -> "Place":
        """The value under a key that must be there."""
        found = self.optional(name)
        if found is None:
            raise self.error(f"has no '{name}'")
        return found

    def optional(self, name: str) -> "Place | None":
        """The value under a key, or None if the key is not there or holds None."""
        value = self.as_dict().get(name)
        return None if value is None else Place(self.path, f"{self.where}.{name}" if self.where else name, value)


def describe(value: Any) -> str:
    """A value in a few words, for errors."""
    if value is None:
        return "missing"
    if type(value) in (int, float, bool):
        # Converting a number of thousands of digits to text is slow, and Python may refuse to.
        return repr(value) if type(value) is not int or abs(value) < 2**128 else "an integer of more than 128 bits"
    names = {"str": "a string", "dict": "a dict", "list": "a list", "tuple": "a tuple"}
    return names.get(type(value).__name__, type(value).__name__)
