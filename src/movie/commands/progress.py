"""Progress of long work, on standard error, only where a person watches."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

# What is being done, and the share that is done (0 to 1); None: unknown.
Report = Callable[[str, float | None], None]


@contextmanager
def watched(path: Path) -> Iterator[Report | None]:
    """A function to report progress with while `path` is worked on, or None where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task(path.name, total=None)

        def report(what: str, share: float | None) -> None:
            bar.update(
                task, description=f"{path.name}: {what}", total=None if share is None else 1.0, completed=share or 0.0
            )

        yield report
