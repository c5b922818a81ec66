"""What card a run needs, as tables that a person reads at a glance. Colours only on a terminal."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from movie.capture.live_fit import LiveFit
from movie.evaluate.fit import AllocatorFit, DeviceFit, TraceFit
from movie.report.terminal import conditions_text, driver_time, trace_line
from movie.sizes import format_size


def show_fit(fit: TraceFit, console: Console) -> None:
    """Prints one trace: path, what is supposed, what it is, the smallest cards, and the curves where there are any."""
    _show(fit, conditions_text(fit.conditions), console)


def show_live_fit(fit: LiveFit, console: Console) -> None:
    """The same of a program that was run."""
    card = fit.phantom.card
    supposed = f"each run on a phantom {card.title}, {format_size(card.context)} of whose memory the context takes"
    late = "" if fit.conditions.lag == 0 else f" · {lateness_text(fit.conditions.lag)}"
    _show(fit, supposed + late, console)


def _show(fit: TraceFit, supposed: str, console: Console) -> None:
    console.print(Text(fit.facts.path, style="bold"), soft_wrap=True)
    console.print(Text(supposed, style="dim"))
    for device in fit.devices:
        console.print()
        named = f"device {device.number}: " if fit.facts.devices > 1 else ""
        console.print(Text(named + trace_line(device.facts)))
        console.print(Text(f"peak requested: {format_size(device.facts.peak_requested)}"))
        console.print()
        console.print(_cards(device))
        for one in device.allocators:
            if not one.monotone:
                console.print(Text(not_monotone(one), style="red"))
        for one in device.allocators:
            if any(point.result.driver for point in one.curve):  # all but the floor
                console.print()
                console.print(Text(f"{one.allocator}: driver time, and what it went to, against the card"))
                console.print(_curve(one))


def lateness_text(lag: int | None) -> str:
    """How far the card is behind, in words."""
    return "the card is done only when waited for" if lag is None else f"the card lags {lag:,} launches"


def not_monotone(fit: AllocatorFit) -> str:
    """A sentence on an allocator that completes on a card and not on a larger one."""
    sizes = ", ".join(format_size(size) for size in fit.fails_above)
    return f"{fit.allocator} completes on {format_size(fit.smallest_card or 0)}, but not on {sizes}"


def _cards(device: DeviceFit) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    table.add_column("allocator", overflow="fold", min_width=9)
    for heading in ("smallest card", "used", "retries there", "reserved when ample"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in device.allocators:
        if one.smallest_card is None or one.there is None:
            table.add_row(Text(one.allocator), Text("none", style="red"), "", "", format_size(one.ample_reserved))
            continue
        table.add_row(
            Text(one.allocator),
            format_size(one.smallest_card),
            f"{device.facts.peak_requested / max(one.smallest_card, 1):.1%}",
            f"{one.there.retries:,}",
            format_size(one.ample_reserved),
        )
    return table


def _curve(one: AllocatorFit) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    for heading in ("factor", "card", "driver", "last ¼", "retries", "views", "edits", "waits", "stalled"):
        table.add_column(heading, justify="right", no_wrap=True)
    for point in one.curve:
        result = point.result
        cells: tuple[str | Text, ...] = (
            driver_time(result.driver_seconds),
            driver_time(result.driver_seconds_last_quarter),
            f"{result.retries:,}",
            f"{result.views['created']:,}",
            f"{result.views['edited']:,}",
            f"{result.driver.get('stream_wait', 0):,}",
            f"{result.stalled_rows:,}",
        )
        if not result.completed:
            cells = (Text("no", style="red"),)
        table.add_row(f"{float(point.factor):g}", format_size(point.card), *cells)
    return table
