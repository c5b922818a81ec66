"""`movie doctor`: what works on this machine."""

import dataclasses
import json

import typer
from rich.console import Console
from rich.table import Table

from movie import __version__
from movie.diagnosis import diagnose

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(as_json: bool = typer.Option(False, "--json", help="Print one JSON document and nothing else.")) -> int:
    """Tell what works on this machine, and what to do about the rest.

    Exits with 1 if something fails; what is optional and missing only warns.
    """
    findings = diagnose()
    if as_json:
        print(
            json.dumps(
                {"version": __version__, "checks": [dataclasses.asdict(finding) for finding in findings]}, indent=2
            )
        )
    else:
        table = Table.grid(padding=(0, 2))
        for finding in findings:
            style = _STYLES[finding.status]
            advice = f"\n[dim]{finding.advice}[/dim]" if finding.advice else ""
            table.add_row(f"[{style}]{finding.status}[/{style}]", finding.name, f"{finding.text}{advice}")
        Console(highlight=False).print(table)
    return 1 if any(finding.status == "fail" for finding in findings) else 0
