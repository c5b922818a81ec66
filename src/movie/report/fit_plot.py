"""Driver time against card size, as a picture of its own (SVG) or as a page with tables."""

import math
from collections.abc import Callable, Sequence
from html import escape
from itertools import cycle

from movie.evaluate.fit import AllocatorFit, DeviceFit, TraceFit
from movie.evaluate.replay import ReplayResult
from movie.report.fit_table import not_monotone
from movie.report.picture import (
    BOTTOM,
    COLOURS,
    HEIGHT,
    LEFT,
    RIGHT,
    STYLE,
    TOP,
    WIDTH,
    page_of,
    picture_of,
    swatch,
)
from movie.report.terminal import conditions_text, driver_time, trace_line
from movie.sizes import format_size

_LEAST = 1e-4  # seconds; less is drawn here: no driver work, as far as anybody could tell
_HEAD = 24  # above each chart of a picture of its own: its title, or a line of the legend

_CHARTS: tuple[tuple[str, Callable[[ReplayResult], float]], ...] = (
    ("Modelled driver time of the whole run", lambda result: result.driver_seconds),
    ("Modelled driver time in the last quarter of the run", lambda result: result.driver_seconds_last_quarter),
)


def svg(fit: TraceFit) -> str:
    """One picture with all charts, one below the other, and a legend. The fit must have curves."""
    parts: list[str] = []
    y = 0

    def line(marks: str) -> None:
        nonlocal y
        parts.append(f'<g transform="translate(0 {y})">{marks}</g>')
        y += _HEAD

    line(_text(LEFT, 16, f"{fit.facts.path} · {conditions_text(fit.conditions)}"))
    for device in fit.devices:
        for title, value in _CHARTS:
            named = f"Device {device.number}: {title}" if fit.facts.devices > 1 else title
            line(_text(LEFT, 16, named))
            parts.append(f'<g transform="translate(0 {y})">{_chart(device, value)}</g>')
            y += HEIGHT
        x, marks = LEFT, ""
        for one, colour in _coloured(device):
            marks += f'<rect x="{x}" y="8" width="16" height="6" fill="{colour}"/>{_text(x + 22, 16, one.allocator)}'
            x += 40 + 7 * len(one.allocator)
        line(marks)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" color="#222"><style>{STYLE}</style>'
        f'<rect width="{WIDTH}" height="{y}" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def page(fits: Sequence[TraceFit]) -> str:
    """A self-contained page: for each trace the charts, and what they show as a table. The fits must have curves."""
    body = "\n".join(_trace(fit) for fit in fits)
    return page_of("MOVie fit: " + ", ".join(fit.facts.path for fit in fits), body)


def _trace(fit: TraceFit) -> str:
    parts = [f"<h1>{escape(fit.facts.path)}</h1>", f'<p class="facts">{escape(conditions_text(fit.conditions))}</p>']
    for device in fit.devices:
        if fit.facts.devices > 1:
            parts.append(f"<h2>Device {device.number}</h2>")
        parts.append(f'<p class="facts">{escape(trace_line(device.facts))}</p>')
        legend = "".join(swatch(colour, escape(one.allocator)) for one, colour in _coloured(device))
        for title, value in _CHARTS:
            parts += [f"<h2>{title}</h2>", picture_of(_chart(device, value), title), f'<p class="legend">{legend}</p>']
        parts += ["<p>Crosses, and “no”: out of memory. Dashed: the peak requested bytes.</p>", _table(device)]
    return "\n".join(parts)


def _table(device: DeviceFit) -> str:
    factors = [point.factor for point in device.allocators[0].curve]
    headings = ["allocator", "smallest card", "retries", *(f"× {float(factor):g}" for factor in factors), ""]
    rows = [f"<tr>{''.join(f'<th>{heading}</th>' for heading in headings)}</tr>"]
    for one in device.allocators:
        cells = [
            escape(one.allocator),
            "none" if one.smallest_card is None else format_size(one.smallest_card),
            "" if one.there is None else f"{one.there.retries:,}",
            *(driver_time(point.result.driver_seconds) if point.result.completed else "no" for point in one.curve),
            "" if one.monotone else escape(not_monotone(one)),
        ]
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    return f'<div class="scroll"><table>{"".join(rows)}</table></div>'


def _coloured(device: DeviceFit) -> list[tuple[AllocatorFit, str]]:
    """The allocators that do driver work, each with its colour."""
    working = [one for one in device.allocators if any(point.result.driver for point in one.curve)]
    return list(zip(working, cycle(COLOURS), strict=False))


def _chart(device: DeviceFit, value: Callable[[ReplayResult], float]) -> str:
    """A line for each allocator over the sizes of cards; crosses at the top, in a row of its own, where it fails."""
    curves = _coloured(device)
    cards = [point.card for one, _ in curves for point in one.curve]
    peak = device.facts.peak_requested
    low, high = min([peak, *cards]), max([peak + 1, *cards])
    times = [value(point.result) for one, _ in curves for point in one.curve if point.result.completed]
    bottom, top = math.log10(_LEAST), math.ceil(math.log10(max([10 * _LEAST, *times])))

    def x(card: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (card - low) / (high - low)

    def y(seconds: float) -> float:
        share = (math.log10(max(seconds, _LEAST)) - bottom) / (top - bottom)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    marks = []
    for power in range(round(bottom), top + 1):
        height = y(10.0**power)
        label = ("≤ " if power == round(bottom) else "") + driver_time(10.0**power)
        marks.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{height:.1f}" y2="{height:.1f}"/>')
        marks.append(_text(LEFT - 8, height + 4, label, "end"))
    for i in range(5):
        card = low + (high - low) * i // 4
        anchor = ("start", "middle", "middle", "middle", "end")[i]
        marks.append(_text(x(card), HEIGHT - 8, format_size(card), anchor))
    marks.append(f'<path class="limit" d="M{x(peak):.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
    for index, (one, colour) in enumerate(curves):
        row = TOP + 10 * index
        done = [(x(point.card), y(value(point.result))) for point in one.curve if point.result.completed]
        path = "L".join(f"{a:.1f} {b:.1f}" for a, b in done)
        dots = "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in done)
        failed = "".join(
            f'<path stroke="{colour}" stroke-width="1.8" d="M{x(point.card) - 4:.1f} {row}l8 8m0 -8l-8 8"/>'
            for point in one.curve
            if not point.result.completed
        )
        if done:
            marks.append(f'<path fill="none" stroke="{colour}" stroke-width="1.8" d="M{path}"/>')
        marks.append(f"<g><title>{escape(one.allocator)}</title>{dots}{failed}</g>")
    return "".join(marks)


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
