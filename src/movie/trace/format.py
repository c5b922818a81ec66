"""What a reader is: a module that makes one of these and is named in `movie.trace.open`."""

from collections.abc import Callable
from dataclasses import dataclass

from movie.trace.model import Trace
from movie.trace.source import Source


@dataclass(frozen=True)
class Format:
    """`name`: for people, as in "not a ...". `recognises`: whether the first bytes, up to 4096 and unpacked, are of it.

    `read`: the traces of a file, one for each device; raises TraceError.
    """

    name: str
    recognises: Callable[[bytes], bool]
    read: Callable[[Source], list[Trace]]
