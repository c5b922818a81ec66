"""The comparison as one self-contained page: charts as inline SVG, the table, no script and no request to anywhere."""

from collections.abc import Sequence
from html import escape
from itertools import cycle

from movie.evaluate.comparison import Comparison, DeviceComparison
from movie.report.picture import (
    BOTTOM,
    COLOURS,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    nice_top,
    page_of,
    picture_of,
    swatch,
)
from movie.report.terminal import assumptions, driver_time, trace_line
from movie.report.verdict import verdict
from movie.sizes import format_size


def page(comparisons: Sequence[Comparison]) -> str:
    """One page for one or several traces. The runs must have been made with a timeline."""
    title = "MOVie replay: " + ", ".join(comparison.facts.path for comparison in comparisons)
    body = "\n".join(_trace(comparison) for comparison in comparisons)
    return page_of(title, body)


def _trace(comparison: Comparison) -> str:
    parts = [f"<h1>{escape(comparison.facts.path)}</h1>", f'<p class="facts">{escape(assumptions(comparison))}</p>']
    for device in comparison.devices:
        if comparison.facts.devices > 1:
            parts.append(f"<h2>Device {device.number}</h2>")
        parts.append(f'<p class="facts">{escape(trace_line(device.facts))}</p>')
        if device.fidelity:
            parts.append(f'<p class="facts">{escape(device.fidelity)}</p>')
        parts.append(_chart(device, comparison.memory))
        parts.append(_table(device))
    return "\n".join(parts)


def _table(device: DeviceComparison) -> str:
    headings = ("allocator", "requested", "reserved", "used", "driver calls", "driver time", "waits", "verdict")
    rows = [f"<tr>{''.join(f'<th>{heading}</th>' for heading in headings)}</tr>"]
    for run in device.runs:
        cells = (
            escape(run.allocator),
            format_size(run.result.peak_requested),
            format_size(run.result.peak_reserved),
            f"{run.result.utilization:.1%}",
            f"{run.driver_calls:,}",
            driver_time(run.result.driver_seconds),
            f"{run.result.driver.get('stream_wait', 0):,}",
            escape(verdict(run, device.native)),
        )
        style = "" if run.result.completed else ' class="failed"'
        rows.append(f"<tr{style}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    return f'<div class="scroll"><table>{"".join(rows)}</table></div>'


def _chart(device: DeviceComparison, memory: int | None) -> str:
    """Reserved bytes by allocator as lines over the rows of the trace, on the area of what is requested."""
    runs = [run for run in device.runs if run.result.timeline]
    if not runs:
        return ""
    rows = max(device.facts.events - 1, 1)
    top = nice_top(max(max(sizes) for run in runs for _, *sizes in run.result.timeline))
    plot = _Plot(rows, top)
    longest = max((run.result.timeline for run in runs), key=len)
    area = plot.steps([(row, requested) for row, requested, _ in longest])
    marks = [_grid(plot), f'<path class="requested" d="{area} V{plot.y(0):.1f} H{plot.x(longest[0][0]):.1f} Z"/>']
    legend = [swatch("#8886", "requested")]
    if memory is not None and memory <= top:
        marks.append(f'<path class="limit" d="M{LEFT} {plot.y(memory):.1f}H{WIDTH - RIGHT}"/>')
        legend.append(swatch("#d40000", "the card"))
    for run, colour in zip(runs, cycle(COLOURS), strict=False):
        line = plot.steps([(row, reserved) for row, _, reserved in run.result.timeline])
        label = escape(run.allocator)
        marks.append(f'<path fill="none" stroke="{colour}" stroke-width="1.8" d="{line}"><title>{label}</title></path>')
        if not run.result.completed:
            row, _, reserved = run.result.timeline[-1]
            marks.append(f'<circle cx="{plot.x(row):.1f}" cy="{plot.y(reserved):.1f}" r="5" fill="{colour}"/>')
            label += " (out of memory at the dot)"
        legend.append(swatch(colour, label))
    picture = picture_of("".join(marks), "Requested and reserved bytes over the trace")
    return f'{picture}<p class="legend">{"".join(legend)}</p>'


class _Plot:
    """Where a row and a size lie in the picture."""

    def __init__(self, rows: int, top: int) -> None:
        self.rows, self.top = rows, top

    def x(self, row: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * min(row, self.rows) / self.rows

    def y(self, size: int) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * size / self.top

    def steps(self, points: Sequence[tuple[int, int]]) -> str:
        """A path that keeps each value until the next point."""
        row, size = points[0]
        moves = [f"M{self.x(row):.1f} {self.y(size):.1f}"]
        for row, size in points[1:]:
            moves.append(f"H{self.x(row):.1f}V{self.y(size):.1f}")
        return "".join(moves)


def _grid(plot: _Plot) -> str:
    lines = []
    for i in range(5):
        size = plot.top * i // 4
        y = plot.y(size)
        lines.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{format_size(size)}</text>')
    for i in range(5):
        row = plot.rows * i // 4
        anchor = ("start", "middle", "middle", "middle", "end")[i]
        lines.append(f'<text x="{plot.x(row):.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">event {row:,}</text>')
    return "".join(lines)
