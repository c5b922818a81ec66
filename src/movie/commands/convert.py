"""`movie convert`: a trace in another format."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from movie.errors import InputError
from movie.sizes import format_size


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A trace in any format that is read.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write: .parquet, or .case for text.")],
    device: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Which device of a trace with several.")
    ] = None,
    times: Annotated[bool, typer.Option("--times/--no-times", help="Keep when things happened (Parquet).")] = True,
) -> None:
    """Convert a trace into another format; OUT appears whole or not at all."""
    # Imported here, so that `movie --help` and bad usage do not wait for numpy and pyarrow.
    from movie.commands.progress import watched  # noqa: PLC0415
    from movie.trace import read_trace, write_case, write_parquet  # noqa: PLC0415

    suffix = target.suffix.lower()
    if suffix not in (".parquet", ".case"):
        raise InputError(
            f"{target}: cannot tell the format from {suffix or 'a name without an ending'!r}: use .parquet or .case"
        )
    with watched(source) as progress:
        if progress:
            progress("reading", None)
        traces = read_trace(source, device=device)
        if len(traces) > 1:
            found = ", ".join(str(trace.device) for trace in traces)
            raise InputError(f"{source}: has devices {found}; choose one with --device")
        (trace,) = traces
        if progress:
            progress("writing", None)
        if suffix == ".parquet":
            write_parquet(trace, target, times=times)
        else:
            write_case(trace, target)
    for warning in trace.warnings:
        typer.echo(f"movie: warning: {source}: {warning}", err=True)
    Console(highlight=False).print(
        f"{target}: {len(trace):,} rows, {format_size(target.stat().st_size)}", soft_wrap=True, markup=False
    )
