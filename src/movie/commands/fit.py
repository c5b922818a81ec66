"""`movie fit`: what card a recorded run needs, and what driver work costs as the card gets smaller."""

import json
import sys
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from movie.commands.options import OUT_OF_MEMORY, Costs, Device, Json, Page, Seed, parse_lag, parse_lateness
from movie.errors import InputError
from movie.sizes import parse_size

_PLOTS = (".svg", ".html")


def fit(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="TRACE | -- PROGRAM...",
            help="A recorded run, in any format that is read; or a program to run: -- python train.py",
        ),
    ],
    allocator: Annotated[
        list[str] | None,
        typer.Option(
            "--allocator",
            "-a",
            metavar="NAME",
            help="An allocator; options follow a colon (native:tie=segment). Repeatable. "
            "[default: all; of a program native and expandable]",
        ),
    ] = None,
    curve: Annotated[bool, typer.Option("--curve", help="Also driver time against card size.")] = False,
    factors: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Cards of the curve, as multiples of the peak requested (and 64 MiB more), separated by commas. "
            "[default: 1.005,1.01,1.02,1.05,1.1,1.25,1.5]",
        ),
    ] = "",
    page: Page = "",
    costs: Costs = "per-call",
    lag: Annotated[
        str,
        typer.Option(
            metavar="N|never",
            help="Rows until work on the device is done; of a program, launches. [default: 1000; of a program 0]",
        ),
    ] = "",
    device: Device = None,
    seed: Seed = 0,
    validate: Annotated[
        bool, typer.Option("--validate/--no-validate", help="Check the runs that are shown with the validator.")
    ] = True,
    phantom: Annotated[
        str,
        typer.Option(metavar="NAME", help="Of a program: the kind of card, whose memory varies. [default: a100-80]"),
    ] = "",
    step: Annotated[
        str, typer.Option(metavar="SIZE", help="Of a program: how exact the search is. [default: 32MiB]")
    ] = "",
    as_json: Json = False,
    plot: Annotated[str, typer.Option(metavar="FILE", help="Also draw the curve: FILE.svg, or FILE.html.")] = "",
) -> int:
    """Find the smallest card on which a run completes under each allocator.

    A recorded run is replayed. A program is run again and again, under PyTorch's own allocators on phantom cards of
    different sizes. Exits with 3 if an allocator completes on no card.
    """
    if "--" in sys.argv[1:]:
        if curve or factors or plot or page:
            raise InputError("--curve, --factors, --plot and --page are of a trace: record one with `movie capture`")
        return _fit_program(what, allocator, phantom, step, lag, seed, as_json)
    if phantom or step:
        raise InputError("--phantom and --step are of a program: give it after --, as in: movie fit -- python train.py")
    if len(what) > 1:
        raise InputError(f"one trace at a time, not also {what[1]!r}; a program is given after --")
    trace = Path(what[0])
    # Imported here, so that `movie --help` and errors in the options do not wait for numpy and pyarrow.
    from movie.allocators import all_allocators, parse_allocator, with_page_size  # noqa: PLC0415
    from movie.commands.progress import watched  # noqa: PLC0415
    from movie.evaluate.comparison import Conditions  # noqa: PLC0415
    from movie.evaluate.fit import FACTORS  # noqa: PLC0415
    from movie.evaluate.fit import fit as find  # noqa: PLC0415
    from movie.report.fit_document import fit_document  # noqa: PLC0415
    from movie.report.fit_plot import page as html_page  # noqa: PLC0415
    from movie.report.fit_plot import svg  # noqa: PLC0415
    from movie.report.fit_table import show_fit  # noqa: PLC0415
    from movie.trace.output import whole_file  # noqa: PLC0415

    if plot and not plot.lower().endswith(_PLOTS):
        raise InputError(f"--plot {plot!r} ends in none of {', '.join(_PLOTS)}")
    chosen = parse_factors(factors) if factors else FACTORS if curve or plot else ()
    specs = [parse_allocator(text) for text in allocator or ()] or all_allocators()
    if page:
        specs = with_page_size(specs, parse_size(page, what="--page"))
    conditions = Conditions(costs=costs, lag=parse_lag(lag or "1000"), seed=seed, validate=validate)
    # Opened before the work begins: a file that cannot be written is known at once.
    with whole_file(plot) if plot else nullcontext() as file:
        with watched(trace) as progress:
            found = find(trace, specs, conditions, chosen, device=device, progress=progress)
        if file:
            file.write((svg(found) if plot.lower().endswith(".svg") else html_page([found])).encode())
    for warning in found.warnings:
        typer.echo(f"movie: warning: {trace}: {warning}", err=True)
    if as_json:
        print(json.dumps(fit_document(found), indent=2))
    else:
        show_fit(found, Console(highlight=False))
    return 0 if found.completed else OUT_OF_MEMORY


def _fit_program(
    program: list[str], allocator: list[str] | None, card: str, step: str, lag: str, seed: int, as_json: bool
) -> int:
    from movie.capture.live_fit import STEP, live_fit  # noqa: PLC0415
    from movie.capture.program import ALLOCATORS  # noqa: PLC0415
    from movie.commands.progress import watched  # noqa: PLC0415
    from movie.phantom.cards import DEFAULT, find_card  # noqa: PLC0415
    from movie.phantom.settings import PhantomSettings  # noqa: PLC0415
    from movie.report.fit_document import live_fit_document  # noqa: PLC0415
    from movie.report.fit_table import show_live_fit  # noqa: PLC0415

    for name in allocator or ():
        if name not in ALLOCATORS:
            raise InputError(f"a program runs under PyTorch's own {' or '.join(ALLOCATORS)}, not under {name!r}")
    phantom = PhantomSettings(find_card(card or DEFAULT), lag=parse_lateness(lag or "0"), seed=seed)
    exact = parse_size(step, what="--step") if step else STEP
    if exact < 1 << 20:
        raise InputError(f"--step {step!r}: a search to less than 1 MiB tells nothing")
    with watched(Path(program[0])) as progress:
        found = live_fit(program, allocator or ALLOCATORS, phantom, step=exact, progress=progress)
    if as_json:
        print(json.dumps(live_fit_document(found), indent=2))
    else:
        show_live_fit(found, Console(highlight=False))
    return 0 if found.completed else OUT_OF_MEMORY


def parse_factors(text: str) -> tuple[Fraction, ...]:
    """The factors of a curve, from the smallest."""
    factors = set()
    for item in text.split(","):
        try:
            factor = Fraction(item.strip())
        except (ValueError, ZeroDivisionError):
            factor = Fraction(0)
        if not 0 < factor <= 1000:
            raise InputError(f"--factors: {item.strip()!r} is not a number above 0 and up to 1000")
        factors.add(factor)
    return tuple(sorted(factors))
