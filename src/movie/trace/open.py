"""Reading a trace of whatever format, and writing one."""

from collections.abc import Callable
from pathlib import Path

from movie.trace import case, kineto, lifetimes, minimalloc, parquet, rmm, rows, snapshot_file, stalloc
from movie.trace.errors import TraceError
from movie.trace.format import Format
from movie.trace.model import Trace
from movie.trace.plain_data import no_garbage_collection
from movie.trace.source import HEAD, Limits, read_source

# A new reader is a module with a Format, and its name here. The first that recognises a file reads it.
FORMATS: tuple[Format, ...] = (
    parquet.FORMAT,
    snapshot_file.PICKLE,
    case.FORMAT,
    snapshot_file.PAGE,
    kineto.FORMAT,
    snapshot_file.JSON,
    stalloc.FORMAT,
    rmm.FORMAT,
    minimalloc.FORMAT,
    lifetimes.FORMAT,
    rows.FORMAT,
)
WRITERS: dict[str, Callable[[Trace, str | Path], None]] = {
    ".parquet": parquet.write_parquet,
    ".case": case.write_case,
    ".txt": case.write_case,
    ".csv": minimalloc.write_minimalloc,
}


def read_trace(path: str | Path, device: int | None = None, limits: Limits | None = None) -> list[Trace]:
    """The traces in a file, one for each device that has events or segments, by device.

    The format is told by the content, not by the name. `device` asks for one device only.

    Raises TraceError, with file and place, for what cannot be read, is of no known format, is damaged or exceeds the
    limits, and for a device that the file does not have.
    """

    def recognised(head: bytes) -> Format:
        for form in FORMATS:
            if form.recognises(head):
                return form
        raise TraceError(path, "", f"is of no known format; MOVie reads: {', '.join(form.name for form in FORMATS)}")

    source = read_source(path, limits or Limits(), recognised)
    with no_garbage_collection():
        traces = recognised(source.data[:HEAD]).read(source)
        for trace in traces:
            try:
                trace.check()
            except ValueError as error:
                raise TraceError(path, "", f"is not a consistent trace: {error}") from None
    if device is None:
        return traces
    chosen = [trace for trace in traces if trace.device == device]
    if not chosen:
        has = ", ".join(str(trace.device) for trace in traces)
        raise TraceError(path, "", f"has no device {device}; it has: {has}")
    return chosen


def write_trace(traces: Trace | list[Trace], path: str | Path) -> None:
    """Writes a trace of one device; the end of the name says how.

    `.parquet`; `.case` and `.txt` for a text case; `.csv` for a problem of minimalloc. What a format cannot hold is
    said by its writer (`parquet.write_parquet`, `case.write_case`, `minimalloc.write_minimalloc`). Raises TraceError
    for any other end of the name, for more than one device, and where the file cannot be written; nothing is left then.
    """
    single = [traces] if isinstance(traces, Trace) else traces
    write = WRITERS.get(Path(path).suffix.lower())
    if write is None:
        raise TraceError(path, "", f"cannot be written: the name ends in none of {', '.join(WRITERS)}")
    if len(single) != 1:
        raise TraceError(path, "", f"cannot be written: it holds one device, not {len(single)}; choose one")
    write(single[0], path)
