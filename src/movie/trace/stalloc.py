"""Text traces of STAlloc: `1 POINTER SIZE STREAM` allocates, `0 POINTER SIZE STREAM` frees, markers stand between.

Markers are `Iteration Index : N`, `micro-batch : F` and `MODULE->CLASS Layer : F-start`; the first two become phases
as they are, the last ones too. Pointers are addresses, stream 0 is `0` and others handles in hexadecimal.
"""

import re

from movie.trace.format import Format
from movie.trace.log import log_of, trace_of
from movie.trace.model import LARGEST, Action, Trace
from movie.trace.source import Source
from movie.trace.text import first_line, integer, lines_of, pointer, signed

_EVENT = re.compile(r"[01] (0x[0-9a-fA-F]+|\(nil\)) \d+ (0x[0-9a-fA-F]+|\d+)", re.ASCII)
_MARKER = re.compile(r"(Iteration Index|micro-batch|[^\s:]{1,300} Layer) : \S{1,100}")


def _recognises(head: bytes) -> bool:
    line = first_line(head)
    return bool(_EVENT.fullmatch(line) or _MARKER.fullmatch(line))


def _read(source: Source) -> list[Trace]:
    rows: list[tuple[int, int, int, int, int, int]] = []  # action, address, bytes, stream, time, phase
    places: list[int] = []
    phases: dict[str, int] = {}
    for number, line in enumerate(lines_of(source), start=1):
        fields = line.split()
        if len(fields) == 4 and fields[0] in ("0", "1"):
            address = pointer(source, number, "the pointer", fields[1])
            size = integer(source, number, "the size", fields[2], 0, LARGEST)
            stream = signed(pointer(source, number, "the stream", fields[3]))
            action = Action.ALLOC if fields[0] == "1" else Action.FREE_REQUESTED
            rows.append((action, address, size, stream, 0, -1))
        elif _MARKER.fullmatch(line.strip()):
            rows.append((Action.MARK, 0, 0, 0, 0, phases.setdefault(line.strip(), len(phases))))
        elif fields:
            raise source.error(f"line {number}", f"'{line[:60]}' is no allocation, free or marker of STAlloc")
        else:
            continue
        places.append(number)
    log = log_of(rows)
    return [trace_of(source, log, lambda row: f"line {places[row]}", format="STAlloc text", phases=tuple(phases))]


FORMAT = Format("text of STAlloc", _recognises, _read)
