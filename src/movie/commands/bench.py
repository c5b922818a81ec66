"""`movie bench`: training runs under PyTorch's own allocators on a phantom, and replays of them under all others."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from movie.errors import InputError

_NOT_ALL = 1  # the exit code where a cell could not be measured


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="A few short cells: minutes on two cores.")] = False,
    only: Annotated[
        str, typer.Option(metavar="GLOB", help="Cells whose names match, such as 'opt-*/hf/*'. [default: all]")
    ] = "",
    listed: Annotated[bool, typer.Option("--list", help="Print the names of the cells, and measure nothing.")] = False,
    work: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="Where traces and figures are kept: what is there is not done again."),
    ] = Path("movie-bench"),
    jobs: Annotated[
        int, typer.Option(metavar="N", min=0, help="Cells at the same time. [default: one for each core]")
    ] = 0,
    json_file: Annotated[
        str, typer.Option("--json", metavar="FILE", help="Also all figures as JSON; -: no table.")
    ] = "",
    html: Annotated[str, typer.Option(metavar="FILE", help="Also the tables as a page.")] = "",
    record: Annotated[bool, typer.Option("--record", help="Only run and record; replay later, or elsewhere.")] = False,
    report: Annotated[bool, typer.Option("--report", help="Only report what is in the work folder.")] = False,
    markdown_file: Annotated[str, typer.Option("--markdown", metavar="FILE", help="Also the tables as Markdown.")] = "",
) -> int:
    """Measure allocators on a matrix of training runs, without a GPU.

    Each cell runs twice on a phantom card, under PyTorch's native and expandable segments; the first run is replayed
    under every allocator. Needs PyTorch and what the workloads import. Can be interrupted and continued. Exits with 1
    if a cell could not be measured.
    """
    # Imported here, so that `movie --help` and errors in the options do not wait for numpy and pyarrow.
    from movie.bench.cells import selected  # noqa: PLC0415
    from movie.bench.matrix import FULL, QUICK  # noqa: PLC0415
    from movie.bench.render import document, markdown, page, show  # noqa: PLC0415
    from movie.bench.run import known, run  # noqa: PLC0415
    from movie.bench.tables import failures  # noqa: PLC0415
    from movie.bench.work import versions  # noqa: PLC0415
    from movie.commands.progress import watched  # noqa: PLC0415
    from movie.trace.output import whole_file  # noqa: PLC0415

    cells = selected(QUICK if quick else FULL, only)
    if listed:
        for cell in cells:
            print(cell.name)
        return 0
    if record and (report or json_file or html or markdown_file):
        raise InputError("--record makes no figures: ask for files, or a report, in another run")
    if "torch" not in versions():
        raise InputError("bench runs PyTorch: install a CUDA build of torch, and movie-alloc[workloads]")
    with ExitStack() as stack:
        # Opened before the work begins: a file that cannot be written is known at once.
        makers = (
            (json_file, lambda found: json.dumps(document(found), indent=2)),
            (html, page),
            (markdown_file, markdown),
        )
        files = [(stack.enter_context(whole_file(name)), make) for name, make in makers if name and name != "-"]
        with watched(Path("bench")) as progress:
            outcomes = known(cells, work) if report else run(cells, work, jobs=jobs, record=record, progress=progress)
        for file, make in files:
            file.write((make(outcomes) + "\n").encode())
    if record:
        for line in failures(outcomes):
            print(f"failed: {line}")
        print(f"{sum(not outcome.failure for outcome in outcomes)} of {len(outcomes)} cells are recorded in {work}")
    elif json_file == "-":
        print(json.dumps(document(outcomes), indent=2))
    else:
        show(outcomes, Console(highlight=False))
    return _NOT_ALL if any(outcome.failure for outcome in outcomes) else 0
