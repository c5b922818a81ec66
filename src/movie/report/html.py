"""The comparison as one self-contained page: charts as inline SVG, the table, no script and no request to anywhere."""

import math
from collections.abc import Sequence
from html import escape
from itertools import cycle
from string import Template

from movie import __version__
from movie.evaluate.comparison import Comparison, DeviceComparison
from movie.report.terminal import assumptions, driver_time, trace_line
from movie.report.verdict import verdict
from movie.sizes import format_size

_WIDTH, _HEIGHT = 960, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 12, 28  # margins of the plot

# Colour-blind safe, and readable on light and dark ground.
_COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")

_PAGE = Template("""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>$title</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin-top: 2.5rem; }
p { margin: .3rem 0; }
.facts, footer { opacity: .75; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #8884; }
th:first-child, td:first-child, th:last-child, td:last-child { text-align: left; }
td:last-child { white-space: normal; min-width: 14rem; }
.failed { color: #d40000; font-weight: 600; }
svg { width: 100%; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
.grid { stroke: #8884; }
.requested { fill: #8886; }
.limit { stroke: #d40000; stroke-dasharray: 6 4; }
.legend span { margin-right: 1.2rem; white-space: nowrap; }
.swatch { display: inline-block; width: 1.2rem; height: .35rem; margin: 0 .4rem .2rem 0; }
</style>
$body
<footer><p>movie $version</p></footer>
</html>
""")


def page(comparisons: Sequence[Comparison]) -> str:
    """One page for one or several traces. The runs must have been made with a timeline."""
    title = "MOVie replay: " + ", ".join(comparison.facts.path for comparison in comparisons)
    body = "\n".join(_trace(comparison) for comparison in comparisons)
    return _PAGE.substitute(title=escape(title), body=body, version=__version__)


def _trace(comparison: Comparison) -> str:
    parts = [f"<h1>{escape(comparison.facts.path)}</h1>", f'<p class="facts">{escape(assumptions(comparison))}</p>']
    for device in comparison.devices:
        if comparison.facts.devices > 1:
            parts.append(f"<h2>Device {device.number}</h2>")
        parts.append(f'<p class="facts">{escape(trace_line(device))}</p>')
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
    top = _nice_top(max(max(sizes) for run in runs for _, *sizes in run.result.timeline))
    plot = _Plot(rows, top)
    longest = max((run.result.timeline for run in runs), key=len)
    area = plot.steps([(row, requested) for row, requested, _ in longest])
    marks = [_grid(plot), f'<path class="requested" d="{area} V{plot.y(0):.1f} H{plot.x(longest[0][0]):.1f} Z"/>']
    legend = ['<span><i class="swatch requested" style="background:#8886"></i>requested</span>']
    if memory is not None and memory <= top:
        marks.append(f'<path class="limit" d="M{_LEFT} {plot.y(memory):.1f}H{_WIDTH - _RIGHT}"/>')
        legend.append('<span><i class="swatch" style="background:#d40000"></i>the card</span>')
    for run, colour in zip(runs, cycle(_COLOURS), strict=False):
        line = plot.steps([(row, reserved) for row, _, reserved in run.result.timeline])
        label = escape(run.allocator)
        marks.append(f'<path fill="none" stroke="{colour}" stroke-width="1.8" d="{line}"><title>{label}</title></path>')
        if not run.result.completed:
            row, _, reserved = run.result.timeline[-1]
            marks.append(f'<circle cx="{plot.x(row):.1f}" cy="{plot.y(reserved):.1f}" r="5" fill="{colour}"/>')
            label += " (out of memory at the dot)"
        legend.append(f'<span><i class="swatch" style="background:{colour}"></i>{label}</span>')
    picture = "".join(marks)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="Requested and reserved bytes over the trace">'
        f"{picture}</svg>"
        f'<p class="legend">{"".join(legend)}</p>'
    )


class _Plot:
    """Where a row and a size lie in the picture."""

    def __init__(self, rows: int, top: int) -> None:
        self.rows, self.top = rows, top

    def x(self, row: int) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * min(row, self.rows) / self.rows

    def y(self, size: int) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * size / self.top

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
        lines.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        lines.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{format_size(size)}</text>')
    for i in range(5):
        row = plot.rows * i // 4
        anchor = ("start", "middle", "middle", "middle", "end")[i]
        lines.append(f'<text x="{plot.x(row):.1f}" y="{_HEIGHT - 8}" text-anchor="{anchor}">event {row:,}</text>')
    return "".join(lines)


def _nice_top(peak: int) -> int:
    """The top of the scale: at least the peak, and easy to divide by four."""
    unit: int = 1024 ** min(max((max(peak, 1).bit_length() - 1) // 10, 0), 5)
    return max(math.ceil(peak * 1.02 / unit / 4), 1) * 4 * unit
