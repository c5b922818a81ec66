"""What commands that replay traces have in common: options, their texts, exit codes."""

from typing import Annotated

import typer

from movie.errors import InputError

OUT_OF_MEMORY = 3  # the exit code

Page = Annotated[str, typer.Option(metavar="SIZE", help="Page size of the allocators that have pages.")]
Costs = Annotated[str, typer.Option(metavar="NAME", help="What driver calls cost: per-call or per-page.")]
Lag = Annotated[str, typer.Option(metavar="N|never", help="Rows until work on the device is done.")]
Device = Annotated[int | None, typer.Option(metavar="N", min=0, help="Only this device of the trace. [default: all]")]
Seed = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        max=2**63 - 1,
        help="0: all work takes the lag; else each piece its own time, drawn from 0 to twice the lag.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]

# Of a program on a phantom card, where it is launches that are counted.
Lateness = Annotated[
    str, typer.Option("--lag", metavar="N|never", help="Launches by which the phantom is behind; never: waits end it.")
]
LatenessSeed = Annotated[
    int,
    typer.Option(
        "--seed",
        metavar="N",
        min=0,
        max=2**63 - 1,
        help="0: all work takes the lag; else each piece its own time, drawn from 0 to twice the lag.",
    ),
]
Segments = Annotated[
    str,
    typer.Option("--allocator", metavar="NAME", help="native or expandable segments. [default: as the program has it]"),
]


def parse_lag(text: str, of: str = "rows") -> int | None:
    """Rows (or what else is counted, `of`) until work is done, or None for `never`."""
    if text.strip().lower() == "never":
        return None
    try:
        lag = int(text)
    except ValueError:
        lag = -1
    if not 0 <= lag < 2**40:
        raise InputError(f"--lag {text!r} is neither a number of {of} nor 'never'")
    return lag


def parse_lateness(text: str) -> int:
    """Launches by which a phantom is behind, or ALWAYS_LATE for `never`."""
    from movie.phantom.settings import ALWAYS_LATE  # noqa: PLC0415  -- not needed by most commands

    lag = parse_lag(text, of="launches")
    return ALWAYS_LATE if lag is None else lag
