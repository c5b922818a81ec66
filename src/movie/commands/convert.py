"""`movie convert`: a trace in another format."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from movie.errors import InputError
from movie.sizes import format_size


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A trace in any format that is read.")],
    target: Annotated[
        Path, typer.Argument(metavar="OUT", help="The file to write: .parquet, .case, or .csv for minimalloc.")
    ],
    device: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Which device of a trace with several.")
    ] = None,
) -> None:
    """Convert a trace into another format; OUT appears whole or not at all."""
    # Imported here, so that `movie --help` and bad usage do not wait for numpy and pyarrow.
    from movie.commands.progress import watched  # noqa: PLC0415
    from movie.trace import read_trace, write_trace  # noqa: PLC0415

    with watched(source) as progress:
        if progress:
            progress("reading", None)
        traces = read_trace(source, device=device)
        if len(traces) > 1:
            found = ", ".join(str(trace.device) for trace in traces)
            raise InputError(f"{source}: has devices {found}; choose one with --device")
        if progress:
            progress("writing", None)
        write_trace(traces, target)
    (trace,) = traces
    for warning in trace.warnings:
        typer.echo(f"movie: warning: {source}: {warning}", err=True)
    line = f"{target}: {len(trace):,} rows, {format_size(target.stat().st_size)}"
    Console(highlight=False).print(line, soft_wrap=True, markup=False)
