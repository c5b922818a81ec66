"""Plain lifetimes: `START END SIZE` a line, separated by blanks, tabs or commas; alive from START to before END.

Lines that are blank or begin with `#` are skipped, and so is a first line that says `start end size`.
"""

import re

from movie.trace.format import Format
from movie.trace.intervals import trace_of_lifetimes
from movie.trace.model import LARGEST, Trace
from movie.trace.source import Source
from movie.trace.text import first_line, integer, lines_of

_SEPARATOR = re.compile(r"\s*,\s*|\s+")
_HEADINGS = ["start", "end", "size"]


def _fields(line: str) -> list[str]:
    return _SEPARATOR.split(line.strip())


def _recognises(head: bytes) -> bool:
    fields = _fields(first_line(head))
    return len(fields) == 3 and (
        [field.lower() for field in fields] == _HEADINGS
        or all(re.fullmatch(r"\d+", field, re.ASCII) for field in fields)
    )


def _read(source: Source) -> list[Trace]:
    start, end, size, places = [], [], [], []
    headings = True
    for number, line in enumerate(lines_of(source), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        fields = _fields(line)
        if headings and [field.lower() for field in fields] == _HEADINGS:
            headings = False
            continue
        headings = False
        if len(fields) != 3:
            raise source.error(f"line {number}", f"has {len(fields)} fields, not the 3 of 'start end size'")
        start.append(integer(source, number, "the start", fields[0], 0, LARGEST))
        end.append(integer(source, number, "the end", fields[1], start[-1] + 1, LARGEST))
        size.append(integer(source, number, "the size", fields[2], 0, LARGEST))
        places.append(number)
    return [trace_of_lifetimes(source, start, end, size, places, format="lifetimes")]


FORMAT = Format("text of lines 'start end size'", _recognises, _read)
