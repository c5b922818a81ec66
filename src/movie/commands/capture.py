"""`movie capture`: runs a program, and records what it asks of the card's memory."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from movie.commands.options import Lateness, LatenessSeed, Segments, parse_lateness
from movie.errors import InputError
from movie.sizes import parse_size

if TYPE_CHECKING:
    from movie.phantom.settings import PhantomSettings

_NO_TRACE = 2


def capture(
    program: Annotated[
        list[str],
        typer.Argument(metavar="-- PROGRAM...", help="What to run, as without MOVie: python train.py --lr 3e-4"),
    ],
    device: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="A phantom of this card: a100-80, h100, rtx4090, ... "
            "[default: the machine's own card; where there is none, a phantom a100-80]",
        ),
    ] = "",
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="What the phantom has, such as 24GiB. [default: as the real one]")
    ] = "",
    count: Annotated[int, typer.Option(metavar="N", min=1, max=64, help="How many such cards.")] = 1,
    lag: Lateness = "0",
    seed: LatenessSeed = 0,
    allocator: Segments = "",
    steps: Annotated[
        int, typer.Option(metavar="N", min=0, help="End the program after N optimizer steps. [default: its own end]")
    ] = 0,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The trace, a Parquet file.")] = Path(
        "capture.parquet"
    ),
) -> int:
    """Run an unmodified training program, and record its memory: on a phantom card, with no GPU in the machine.

    Launchers (torchrun, accelerate launch, deepspeed) run rank 0 alone. Exits with the program's own exit code.
    """
    # Imported here, so that `movie --help` and errors in the options do not wait for numpy and pyarrow.
    from movie.capture.assemble import traces_of  # noqa: PLC0415
    from movie.capture.program import ALLOCATORS, Watching, watched, why_nothing  # noqa: PLC0415
    from movie.report.captured import captured_lines  # noqa: PLC0415
    from movie.trace import write_trace  # noqa: PLC0415
    from movie.trace.output import check_writable  # noqa: PLC0415

    if allocator and allocator not in ALLOCATORS:
        raise InputError(f"--allocator {allocator!r} is none of {', '.join(ALLOCATORS)}")
    if output.suffix.lower() != ".parquet":
        raise InputError(f"-o {str(output)!r}: the name of a trace ends in .parquet")
    if not output.absolute().parent.is_dir():
        raise InputError(f"-o {str(output)!r}: there is no folder {str(output.absolute().parent)!r}")
    check_writable(output)  # known before the program has run for hours
    phantom = _phantom(device, memory, count, lag, seed)
    watching = Watching(phantom, allocator or None, steps=steps)
    with watched(program, watching) as ended:
        if not ended.recorded:
            typer.echo(f"movie: {why_nothing(ended)}; no trace is written", err=True)
            return ended.exit_code or _NO_TRACE
        traces = traces_of(ended.recorded[0], ended, watching)
    if not traces:
        typer.echo("movie: the program used a card, but none of its memory; no trace is written", err=True)
        return ended.exit_code or _NO_TRACE
    for trace in traces:
        path = output if len(traces) == 1 else output.with_suffix(f".{trace.device}{output.suffix}")
        write_trace(trace, path)
        for line in captured_lines(trace, path):
            typer.echo(f"movie: {line}", err=True)
    return ended.exit_code


def _phantom(device: str, memory: str, count: int, lag: str, seed: int) -> "PhantomSettings | None":
    """The card to run on: None for the machine's own."""
    from movie.phantom.cards import DEFAULT, find_card  # noqa: PLC0415
    from movie.phantom.real_card import has_real_card  # noqa: PLC0415
    from movie.phantom.settings import PhantomSettings  # noqa: PLC0415

    late = parse_lateness(lag)
    if device or not has_real_card():
        size = parse_size(memory, what="--memory") if memory else None
        return PhantomSettings(find_card(device or DEFAULT), size, count, late, seed).check()
    if memory or count != 1 or late or seed:
        raise InputError("--memory, --count, --lag and --seed are of a phantom: name the card with --device")
    return None
