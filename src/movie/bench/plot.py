"""A picture for each cell: how much longer an iteration takes as its card gets smaller."""

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from movie.bench.figures import OURS, RIVALS
from movie.bench.pressure import Row, slowdown
from movie.report.picture import BOTTOM, COLOURS, HEIGHT, LEFT, RIGHT, TOP, WIDTH, picture_of, swatch

_COLOURED = dict(zip((*RIVALS, *OURS), COLOURS, strict=False))
_LEAST = 1e-4  # of an iteration: less is drawn here


def legend() -> str:
    """Which colour is whose, as HTML."""
    return "".join(swatch(colour, escape(name)) for name, colour in _COLOURED.items())


def picture(cell: Mapping[str, Row]) -> str:
    """A cell's curves, as HTML: over the cards what is added to the computing, logarithmic; crosses: out of memory."""
    rows = {name: row for name, row in cell.items() if name in _COLOURED and row["curve"]}
    factors = [point["factor"] for point in next(iter(rows.values()))["curve"]] if rows else []
    values = {name: [slowdown(row, point) for point in row["curve"]] for name, row in rows.items()}
    known = [value - 1 for line in values.values() for value in line if value is not None]
    if not known:
        return ""
    bottom, top = math.log10(_LEAST), math.ceil(math.log10(max(*known, 10 * _LEAST)))

    def x(number: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (number + 0.5) / len(factors)

    def y(added: float) -> float:
        share = (math.log10(max(added, _LEAST)) - bottom) / (top - bottom)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    marks = []
    for power in range(round(bottom), top + 1):
        height = y(10.0**power)
        text = f"{'≤ ' if power == round(bottom) else ''}{100 * 10.0**power:g} %"
        marks.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{height:.1f}" y2="{height:.1f}"/>')
        marks.append(f'<text x="{LEFT - 8}" y="{height + 4:.1f}" text-anchor="end">{text}</text>')
    for number, factor in enumerate(factors):
        marks.append(f'<text x="{x(number):.1f}" y="{HEIGHT - 8}" text-anchor="middle">× {factor:g}</text>')
    for index, (name, line) in enumerate(values.items()):
        marks.append(_line(name, [None if value is None else value - 1 for value in line], x, y, TOP + 10 * index))
    title = str(next(iter(rows.values()))["cell"])
    return f"<h3>{escape(title)}</h3>" + picture_of("".join(marks), f"Time added to an iteration of {title}")


def _line(name: str, values: list[float | None], x: Any, y: Any, row: int) -> str:
    colour = _COLOURED[name]
    done = [(x(number), y(value)) for number, value in enumerate(values) if value is not None]
    path = "L".join(f"{a:.1f} {b:.1f}" for a, b in done)
    dots = "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in done)
    failed = "".join(
        f'<path stroke="{colour}" stroke-width="1.8" d="M{x(number) - 4:.1f} {row}l8 8m0 -8l-8 8"/>'
        for number, value in enumerate(values)
        if value is None
    )
    drawn = f'<path fill="none" stroke="{colour}" stroke-width="1.8" d="M{path}"/>' if done else ""
    return f"<g><title>{escape(name)}</title>{drawn}{dots}{failed}</g>"
