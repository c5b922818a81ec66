"""CSV logs of RMM's logging adaptor: `Thread,Time,Action,Pointer,Size,Stream`.

Actions are `allocate`, `free` and `allocate failure`, which becomes a row that says that memory ran out. Times have no
date: they are microseconds of the first day, and one that is half a day earlier than the one before it is of the next.
"""

import re

from movie.trace.format import Format
from movie.trace.log import log_of, trace_of
from movie.trace.model import LARGEST, Action, Trace
from movie.trace.source import Source
from movie.trace.text import first_line, integer, lines_of, pointer, signed

_HEADER = "Thread,Time,Action,Pointer,Size,Stream"
_ACTIONS = {"allocate": Action.ALLOC, "free": Action.FREE_REQUESTED, "allocate failure": Action.OOM}
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(?:[.:](\d{1,9}))?", re.ASCII)
_DAY = 86_400_000_000  # microseconds


def _time(source: Source, line: int, text: str) -> int:
    match = _TIME.fullmatch(text)
    if match is None:
        raise source.error(f"line {line}", f"the time '{text[:60]}' is not of the form 10:15:07.002666")
    hours, minutes, seconds = (int(match[i]) for i in (1, 2, 3))
    return (hours * 3600 + minutes * 60 + seconds) * 1_000_000 + int((match[4] or "0")[:6].ljust(6, "0"))


def _read(source: Source) -> list[Trace]:
    rows: list[tuple[int, int, int, int, int, int]] = []  # action, address, bytes, stream, time, phase
    places: list[int] = []
    day, before = 0, 0
    for number, line in enumerate(lines_of(source), start=1):
        fields = [field.strip() for field in line.split(",")]
        if not line.strip() or fields == _HEADER.split(","):  # logs that were put together have several
            continue
        if len(fields) != 6:
            raise source.error(f"line {number}", f"has {len(fields)} fields, not the 6 of {_HEADER}")
        action = _ACTIONS.get(fields[2])
        if action is None:
            raise source.error(f"line {number}", f"the action '{fields[2][:60]}' is none of {', '.join(_ACTIONS)}")
        time = _time(source, number, fields[1])
        day += _DAY if before - time > _DAY // 2 else 0
        before = time
        address = pointer(source, number, "the pointer", fields[3])
        size = integer(source, number, "the size", fields[4], 0, LARGEST)
        stream = signed(pointer(source, number, "the stream", fields[5]))
        rows.append((action, address, size, stream, day + time, -1))
        places.append(number)
    if not rows:
        raise source.error("", "has a header and no line after it")
    return [trace_of(source, log_of(rows), lambda row: f"line {places[row]}", format="RMM log")]


FORMAT = Format("CSV log of RMM", lambda head: first_line(head) == _HEADER, _read)
