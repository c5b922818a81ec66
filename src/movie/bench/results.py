"""docs/results.md, made from the results of a bench that are in the repository.

    python -m movie.bench.results RESULTS.json [LARGEST.json] > docs/results.md

RESULTS is a document of `movie bench --json`, LARGEST one of `python -m movie.bench.largest`; both may be packed by
gzip. Every place where a target is missed is named, and every cell that was not run: nothing is left out by hand.
"""

import gzip
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from movie.bench.cells import Cell
from movie.bench.iteration import SHARES
from movie.bench.largest import ALLOCATORS
from movie.bench.pressure import measured
from movie.bench.published import PUBLISHED, UNKNOWN
from movie.bench.render import markdown_of
from movie.bench.run import Outcome
from movie.bench.tables import Table, details, overview, summary
from movie.bench.targets import verdicts
from movie.sizes import format_size


def results(document: Mapping[str, Any], largest: Mapping[str, Any] | None, command: str) -> str:
    """The page, in Markdown."""
    outcomes = outcomes_of(document)
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    parts = [
        "# Results",
        f"Made by `{command}`; do not edit. The results are those of `movie bench --json FILE` (with `--report` where "
        "not all cells were run) and of `python -m movie.bench.largest`. What the figures mean, and what is real in "
        "them: [bench.md](bench.md). Of which state of the allocators they are: "
        "[README](../benchmarks/results/bench/README.md).",
        f"A phantom {document['card']} · costs {document['costs']} · lag {document['lag']:,} rows · {versions}. "
        f"{len(outcomes)} cells measured, {len(document['failed'])} not.",
        "## What it comes to",
        _list(summary(outcomes)),
        "## Targets",
        "Runs are as short as their names say (the last figure). Over a whole run the first iterations, in which "
        "memory is obtained, weigh far more than in training; late iterations are what a long run comes to.",
        _targets(outcomes),
    ]
    parts += [markdown_of(table) for table in (*overview(outcomes), published(outcomes))]
    parts.append(_list(UNKNOWN))
    if largest is not None:
        parts.append(markdown_of(batches(largest)))
    parts.append(markdown_of(details(outcomes)))
    failed = [f"{one['cell']}: {one['reason'].partition(' (see ')[0]}" for one in document["failed"]]
    if failed:
        parts += ["## Not measured", _list(failed)]
    return "\n\n".join(parts) + "\n"


def outcomes_of(document: Mapping[str, Any]) -> list[Outcome]:
    """The measured cells of a document, in its order."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in document["cells"]:
        found.setdefault(row["cell"], []).append(row)
    names = [field.name for field in fields(Cell)]
    return [Outcome(Cell(**{name: rows[0][name] for name in names}), rows) for rows in found.values()]


def published(outcomes: Sequence[Outcome]) -> Table:
    """Ours beside what was published for GMLake."""
    rows = []
    for one in PUBLISHED:
        for cell in measured(outcomes):
            row = cell["native"]
            if (row["framework"], row["workload"], row["strategy"]) == ("zero3", one.workload, one.strategy) and (
                row["ranks"] == one.ranks or one.workload == "gpt-neox-20b"
            ):
                shares = [cell[name]["utilization"] for name in ("native", "gmlake", "movie", "movie-lean")]
                told = (f"{one.native:.1%}", f"{shares[0]:.1%}", f"{one.gmlake:.1%}", *(f"{x:.1%}" for x in shares[1:]))
                rows.append((row["cell"], *told))
    headings = ("cell", "native, published", "native", "gmlake, published", "gmlake", "movie", "movie-lean")
    note = "Utilization under DeepSpeed ZeRO-3 beside GMLake's published figures. What is not known of these:"
    return Table("Beside what GMLake published", note, headings, tuple(rows))


def batches(largest: Mapping[str, Any]) -> Table:
    """The largest batch of each allocator on a card, and the throughput with it."""
    cards = {format_size(one["card"]) for one in largest["largest"]}
    shown = str(SHARES[1])
    rows = []
    for one in largest["largest"]:
        texts = []
        for name in ALLOCATORS:
            found = one["largest"][name]
            speed = found["samples_a_second_at"]
            texts.append(f"{found['batch']}" + (f" ({speed[shown]:.2f}/s)" if speed else ""))
        rows.append((one["cell"], *texts))
    note = (
        f"On a card with {' or '.join(sorted(cards))} beside the context; sequences a second of a late iteration, "
        f"computing at {SHARES[1]:.0%} of the peak. Searched to about six in a hundred."
    )
    return Table("The largest batch that fits", note, ("cell", *ALLOCATORS), tuple(rows))


def _targets(outcomes: Sequence[Outcome]) -> str:
    found = verdicts(measured(outcomes))
    lines = []
    for one in found:
        if not one.looked:
            lines.append(f"- not looked at: {one.target}")
        elif not one.missed:
            lines.append(f"- reached ({one.looked} cells): {one.target}")
        else:
            lines.append(f"- **missed** {len(one.missed)} times ({one.looked} cells): {one.target}")
            lines += [f"  - {text}" for text in one.missed]
    return "\n".join(lines)


def _list(texts: Sequence[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def _read(path: Path) -> dict[str, Any]:
    packed = path.read_bytes()
    document: dict[str, Any] = json.loads(gzip.decompress(packed) if path.suffix == ".gz" else packed)
    return document


def main(arguments: Sequence[str]) -> int:
    """0 when the page is written."""
    if not 1 <= len(arguments) <= 2:
        print("usage: python -m movie.bench.results RESULTS.json[.gz] [LARGEST.json[.gz]]", file=sys.stderr)
        return 2
    document, *more = [_read(Path(name)) for name in arguments]
    command = " ".join(("python -m movie.bench.results", *arguments))
    sys.stdout.write(results(document, more[0] if more else None, command))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
