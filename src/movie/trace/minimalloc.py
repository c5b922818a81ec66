"""Problems of minimalloc in CSV: `id,lower,upper,size`, a buffer a line, alive from `lower` to before `upper`.

Columns come in any order; `alignment`, `hint` and `offset` are ignored. The capacity is not in the file but, by the
custom of that project, a number in its name: `problem.1048576.csv`. Times and sizes have no unit; sizes are taken for
bytes.
"""

import re
from pathlib import Path

import numpy as np

from movie.trace.format import Format
from movie.trace.intervals import trace_of_lifetimes
from movie.trace.model import LARGEST, Action, Trace, block_table
from movie.trace.output import whole_file
from movie.trace.source import Source
from movie.trace.text import first_line, integer, lines_of

_COLUMNS = ("id", "lower", "upper", "size")
_IGNORED = ("alignment", "hint", "offset", "gaps")
_CAPACITY = re.compile(r"\.(\d{1,18})\.csv(\.gz|\.xz)?", re.IGNORECASE | re.ASCII)


def _headings(line: str) -> list[str]:
    return [heading.strip().lower() for heading in line.split(",")]


def _recognises(head: bytes) -> bool:
    return set(_COLUMNS) <= set(_headings(first_line(head)))


def _capacity(path: str) -> int | None:
    """What the end of the file's name says."""
    match = _CAPACITY.search(Path(path).name)
    return int(match[1]) if match and match.end() == len(Path(path).name) else None


def _read(source: Source) -> list[Trace]:
    numbered = [
        (number, line)
        for number, line in enumerate(lines_of(source), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    headings = _headings(numbered[0][1])
    unknown = [heading for heading in headings if heading not in (*_COLUMNS, *_IGNORED)]
    if unknown or len(set(headings)) < len(headings):
        raise source.error(f"line {numbered[0][0]}", f"has a column '{(unknown or headings)[0][:60]}' too many")
    lower, upper, size = [], [], []
    names: set[str] = set()
    for number, line in numbered[1:]:
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != len(headings):
            raise source.error(f"line {number}", f"has {len(fields)} fields where the header has {len(headings)}")
        values = dict(zip(headings, fields, strict=True))
        if values["id"] in names:
            raise source.error(f"line {number}", f"has a second buffer '{values['id'][:60]}'")
        names.add(values["id"])
        if values.get("gaps"):
            raise source.error(f"line {number}", "has gaps in a buffer's life, which a trace cannot have")
        lower.append(integer(source, number, "'lower'", values["lower"], 0, LARGEST))
        upper.append(integer(source, number, "'upper'", values["upper"], lower[-1] + 1, LARGEST))
        size.append(integer(source, number, "the size", values["size"], 0, LARGEST))
    trace = trace_of_lifetimes(
        source,
        lower,
        upper,
        size,
        [number for number, _ in numbered[1:]],
        format="minimalloc CSV",
        capacity=_capacity(source.path),
    )
    return [trace]


def write_minimalloc(trace: Trace, path: str | Path) -> None:
    """Writes a trace as a problem of minimalloc: a buffer for each block, ids and times counted from 0.

    A block lives until its free completed where that was recorded, else until the free. Streams, pools, addresses,
    times and all rows that are of no block are left out, and what is alive at the end lives until the end. The capacity
    belongs in the name of the file, which the caller chooses.

    Raises TraceError if the file cannot be written; nothing is left then.
    """
    rows = np.isin(trace.action, (Action.ALLOC, Action.FREE_REQUESTED, Action.FREE_COMPLETED))
    action, ids = trace.action[rows], trace.id[rows]
    moment = np.arange(1, len(ids) + 1)
    lower = np.zeros(trace.ids, dtype=np.int64)
    upper = np.full(trace.ids, len(ids) + 1, dtype=np.int64)
    born = action == Action.ALLOC
    lower[ids[born]] = moment[born]
    for kind in (Action.FREE_REQUESTED, Action.FREE_COMPLETED):
        ended = action == kind
        upper[ids[ended]] = moment[ended]
    sizes = block_table(trace)["bytes"]
    with whole_file(path) as file:
        file.write(f"{','.join(_COLUMNS)}\n".encode())
        for buffer, fields in enumerate(zip(lower.tolist(), upper.tolist(), sizes.tolist(), strict=True)):
            file.write(f"{buffer},{fields[0]},{fields[1]},{fields[2]}\n".encode())


FORMAT = Format("CSV problem of minimalloc", _recognises, _read)
