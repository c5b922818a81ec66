"""`movie doctor`: what works on this machine."""

import dataclasses
import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from movie import __version__
from movie.diagnosis import diagnose

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> int:
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
            text = Text(finding.text)
            if finding.advice:
                text.append(f"\n{finding.advice}", style="dim")
            table.add_row(Text(finding.status, style=_STYLES[finding.status]), finding.name, text)
        Console(highlight=False).print(table)
    return 1 if any(finding.status == "fail" for finding in findings) else 0
