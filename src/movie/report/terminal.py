"""The comparison as a table that a person reads at a glance. It holds 80 columns; colours only on a terminal."""

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from movie.evaluate.comparison import Comparison, Conditions, DeviceComparison, Facts, Run
from movie.report.verdict import report, verdict
from movie.sizes import format_size


def show(comparison: Comparison, console: Console, title: str = "") -> None:
    """Prints one trace under its allocators: title (else path), what is supposed, what it is, figures, verdicts."""
    console.print(Text(title or comparison.facts.path, style="bold"), soft_wrap=True)
    console.print(Text(assumptions(comparison), style="dim"))
    for device in comparison.devices:
        console.print()
        console.print(_device(device, named=comparison.facts.devices > 1))


def trace_line(facts: Facts) -> str:
    """What the trace is, in one line."""
    start = f"starts with {format_size(facts.start_live)} alive" if facts.start_live else "starts empty"
    streams = f"{facts.streams:,} stream{'' if facts.streams == 1 else 's'}"
    return f"{facts.events:,} events, {facts.allocations:,} allocations, {streams}, {start}"


def assumptions(comparison: Comparison) -> str:
    """What the replay supposes about the card: capacity, cost table, lag."""
    card = f"card of {format_size(comparison.memory)}" if comparison.memory is not None else "ample card"
    return f"{card} · {conditions_text(comparison.conditions)}"


def conditions_text(conditions: Conditions) -> str:
    """The cost table, and how long the device takes, as the replay supposes."""
    lag = "device work never completes" if conditions.lag is None else f"device lags {conditions.lag:,} rows"
    return f"modelled costs: {conditions.costs} · {lag}"


def driver_time(seconds: float) -> str:
    """Modelled seconds with three figures: `1.24 s`, `318 ms`, `78 µs`, `0 s`."""
    if seconds >= 1:
        return f"{seconds:,.2f} s"
    if seconds >= 1e-3:
        return f"{1e3 * seconds:.3g} ms"
    return f"{1e6 * seconds:.0f} µs" if seconds > 0 else "0 s"


def _device(device: DeviceComparison, named: bool) -> RenderableType:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    table.add_column("allocator", overflow="fold", min_width=9)
    for heading in ("requested", "reserved", "used", "driver calls", "driver time", "waits"):
        table.add_column(heading, justify="right", no_wrap=True)
    for run in device.runs:
        table.add_row(
            Text(run.allocator),
            format_size(run.result.peak_requested),
            Text(format_size(run.result.peak_reserved), style="" if run.result.completed else "red"),
            f"{run.result.utilization:.1%}",
            f"{run.driver_calls:,}",
            driver_time(run.result.driver_seconds),
            f"{run.result.driver.get('stream_wait', 0):,}",
        )
    verdicts = Table.grid(padding=(0, 1))
    for run in device.runs:
        verdicts.add_row(Text(f"{run.allocator}:"), _verdict(run, device.native))
    lines: list[RenderableType] = [
        Text(trace_line(device.facts) if not named else f"device {device.number}: {trace_line(device.facts)}")
    ]
    if device.fidelity:
        lines.append(Text(device.fidelity))
    return Group(*lines, Text(), table, Text(), verdicts)


def _verdict(run: Run, native: Run | None) -> Text:
    if run.result.completed:
        return Text(verdict(run, native))
    text = Text(verdict(run, native), style="red")
    why = report(run)
    return text.append(f"\n{why}", style="dim") if why else text
