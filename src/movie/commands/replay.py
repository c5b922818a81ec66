"""`movie replay`: what each allocator would have done with a recorded run."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from movie.commands.options import OUT_OF_MEMORY, Costs, Device, Json, Lag, Page, Seed, parse_lag
from movie.errors import InputError
from movie.sizes import parse_size


def replay(
    traces: Annotated[
        list[Path],
        typer.Argument(metavar="TRACE...", help="Recorded runs, in any format that is read."),
    ],
    allocator: Annotated[
        list[str] | None,
        typer.Option(
            "--allocator",
            "-a",
            metavar="NAME",
            help="An allocator; options follow a colon (native:tie=segment). Repeatable. "
            "[default: native, movie, movie-lean, bound]",
        ),
    ] = None,
    memory: Annotated[
        str,
        typer.Option(metavar="SIZE", help="What the card has, such as 80GiB. [default: enough; a case has its own]"),
    ] = "",
    page: Page = "",
    costs: Costs = "per-call",
    lag: Lag = "1000",
    device: Device = None,
    seed: Seed = 0,
    validate: Annotated[
        bool, typer.Option("--validate/--no-validate", help="Check every step with the independent validator.")
    ] = True,
    as_json: Json = False,
    html: Annotated[str, typer.Option(metavar="FILE", help="Also write a page with charts.")] = "",
) -> int:
    """Replay recorded allocations under several allocators, and tell what each would have reserved.

    Exits with 3 if an allocator ran out of memory.
    """
    # Imported here, so that `movie --help` and errors in the options do not wait for numpy and pyarrow.
    from movie.allocators import default_allocators, parse_allocator, with_page_size  # noqa: PLC0415
    from movie.commands.progress import watched  # noqa: PLC0415
    from movie.evaluate.comparison import Conditions, compare  # noqa: PLC0415
    from movie.report.document import document  # noqa: PLC0415
    from movie.report.html import page as html_page  # noqa: PLC0415
    from movie.report.terminal import show  # noqa: PLC0415
    from movie.trace.output import whole_file  # noqa: PLC0415

    specs = [parse_allocator(text) for text in allocator or ()] or default_allocators()
    if page:
        specs = with_page_size(specs, parse_size(page, what="--page"))
    conditions = Conditions(
        memory=_positive(parse_size(memory, what="--memory"), "--memory") if memory else None,
        costs=costs,
        lag=parse_lag(lag),
        seed=seed,
        validate=validate,
        samples=1000 if html else 0,
    )
    comparisons = []
    console = Console(highlight=False)
    # Opened before the work begins: a file that cannot be written is known at once.
    with whole_file(html) if html else nullcontext() as file:
        for path in traces:
            with watched(path) as progress:
                comparison = compare(path, specs, conditions, device=device, progress=progress)
            comparisons.append(comparison)
            for warning in comparison.warnings:
                typer.echo(f"movie: warning: {path}: {warning}", err=True)
            if not as_json:
                if len(comparisons) > 1:
                    console.print()
                show(comparison, console)
        if file:
            file.write(html_page(comparisons).encode())
    if as_json:
        documents = [document(comparison) for comparison in comparisons]
        print(json.dumps(documents[0] if len(documents) == 1 else documents, indent=2))
    return 0 if all(comparison.completed for comparison in comparisons) else OUT_OF_MEMORY


def _positive(size: int, what: str) -> int:
    if size == 0:
        raise InputError(f"{what} is 0: give the size of a card, such as 80GiB")
    return size
