"""What pictures and pages share: measures, colours, styles, scales, and the page around them."""

import math
from html import escape
from string import Template

from movie import __version__

WIDTH, HEIGHT = 960, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 12, 28  # margins of the plot

# Colour-blind safe, and readable on light and dark ground.
COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")

STYLE = """\
svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
.grid { stroke: #8884; }
.requested { fill: #8886; }
.limit { stroke: #d40000; stroke-dasharray: 6 4; }"""

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
$picture_style
svg { width: 100%; height: auto; }
.legend span { margin-right: 1.2rem; white-space: nowrap; }
.swatch { display: inline-block; width: 1.2rem; height: .35rem; margin: 0 .4rem .2rem 0; }
</style>
$body
<footer><p>movie $version</p></footer>
</html>
""")


def page_of(title: str, body: str) -> str:
    """A self-contained page: no script, and no request to anywhere. `body` is HTML, `title` is text."""
    return _PAGE.substitute(title=escape(title), body=body, version=__version__, picture_style=STYLE)


def picture_of(marks: str, label: str) -> str:
    """A picture of the usual measures for a page."""
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">{marks}</svg>'


def swatch(colour: str, label: str) -> str:
    """An entry of a legend; `label` is HTML."""
    return f'<span><i class="swatch" style="background:{colour}"></i>{label}</span>'


def nice_top(peak: int) -> int:
    """The top of a scale of sizes: at least the peak, and easy to divide by four."""
    unit: int = 1024 ** min(max((max(peak, 1).bit_length() - 1) // 10, 0), 5)
    return max(math.ceil(peak * 1.02 / unit / 4), 1) * 4 * unit
