"""Tables on a terminal, in Markdown, as a page; and all of a bench as one document for scripts."""

from collections.abc import Sequence
from html import escape
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from movie import __version__
from movie.bench.iteration import PEAK, USUAL
from movie.bench.plot import legend, picture
from movie.bench.pressure import measured
from movie.bench.run import Outcome
from movie.bench.tables import Table, details, failures, overview, summary
from movie.bench.work import versions
from movie.evaluate.comparison import Conditions
from movie.phantom.cards import DEFAULT, find_card
from movie.report.picture import page_of
from movie.report.terminal import conditions_text


def document(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """For `json.dumps`; a contract: fields are only ever added. Sizes in bytes, `lag` in rows."""
    conditions = Conditions()
    return {
        "movie": __version__,
        "versions": versions(),
        "card": find_card(DEFAULT).title,
        "costs": conditions.costs,
        "lag": conditions.lag,
        "peak_operations": PEAK,
        "share_of_peak": USUAL,
        "cells": [row for outcome in outcomes for row in outcome.rows],
        "failed": [{"cell": one.cell.name, "reason": one.failure} for one in outcomes if one.failure],
    }


def show(outcomes: Sequence[Outcome], console: Console) -> None:
    """Prints the overview."""
    console.print(Text(supposed(), style="dim"))
    for table in overview(outcomes):
        console.print()
        console.print(Text(table.title, style="bold"))
        console.print(Text(table.note, style="dim"))
        shown = RichTable(box=None, padding=(0, 0, 0, 1), pad_edge=False, header_style="bold")
        for number, heading in enumerate(table.headings):
            shown.add_column(heading, justify="right" if number else "left", overflow="fold", no_wrap=number > 0)
        for row in table.rows:
            shown.add_row(*map(Text, row))
        console.print(shown)
    console.print()
    for line in summary(outcomes):
        console.print(Text(line))
    for line in failures(outcomes):
        console.print(Text(f"failed: {line}", style="red"))


def markdown(outcomes: Sequence[Outcome]) -> str:
    """All tables, and what they come to."""
    parts = ["# What the bench found", supposed(), "\n".join(f"- {line}" for line in summary(outcomes))]
    for table in (*overview(outcomes), details(outcomes)):
        parts.append(markdown_of(table))
    failed = failures(outcomes)
    if failed:
        parts.append("## Not measured\n\n" + "\n".join(f"- {line}" for line in failed))
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown_of(table: Table) -> str:
    """A section of Markdown."""
    lines = [table.headings, tuple("---:" if number else "---" for number in range(len(table.headings)))]
    text = "\n".join(f"| {' | '.join(row)} |" for row in (*lines, *table.rows))
    return f"## {table.title}\n\n{table.note}\n\n{text}"


def page(outcomes: Sequence[Outcome]) -> str:
    """The same as one self-contained page."""
    parts = ["<h1>What the bench found</h1>", f'<p class="facts">{escape(supposed())}</p>', _list(summary(outcomes))]
    for table in (*overview(outcomes), details(outcomes)):
        parts += [f"<h2>{escape(table.title)}</h2>", f'<p class="facts">{escape(table.note)}</p>', _html(table)]
    pictures = "".join(picture(cell) for cell in measured(outcomes))
    if pictures:
        note = "Time added to the computing of a late iteration: driver calls and stalls. Crosses: out of memory."
        parts += ["<h2>Driver calls and stalls as cards get smaller</h2>", f'<p class="facts">{note}</p>']
        parts += [f'<p class="legend">{legend()}</p>', pictures]
    failed = failures(outcomes)
    if failed:
        parts += ["<h2>Not measured</h2>", _list(failed)]
    return page_of("MOVie bench", "\n".join(parts))


def supposed() -> str:
    """What the figures rest on."""
    used = ", ".join(f"{name} {version}" for name, version in versions().items())
    return f"a phantom {find_card(DEFAULT).title} with ample memory · {conditions_text(Conditions())} · {used}"


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""


def _html(table: Table) -> str:
    head = f"<tr>{''.join(f'<th>{escape(heading)}</th>' for heading in table.headings)}</tr>"
    rows = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in table.rows)
    return f'<div class="scroll"><table>{head}{rows}</table></div>'
