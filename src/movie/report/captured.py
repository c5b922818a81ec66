"""What was recorded, in lines."""

from pathlib import Path

from movie import _core
from movie.evaluate.columns import columns_of
from movie.evaluate.comparison import facts_of
from movie.sizes import format_size
from movie.trace import Trace


def captured_lines(trace: Trace, path: Path) -> list[str]:
    """What a fresh trace holds and where it is, and what is to be known about it."""
    facts = facts_of(trace, _core.floor_of(columns_of(trace)))
    reserved = int(trace.header["peak reserved"])
    used = f" ({facts.peak_allocated / reserved:.1%} used)" if reserved else ""
    steps = trace.header["steps"]
    figures = [
        f"{path}: {facts.events:,} events, {steps} step{'' if steps == '1' else 's'}",
        f"peak requested {format_size(facts.peak_requested)}",
        f"peak reserved {format_size(reserved)}{used}",
        f"{trace.header['retries']} retries",
    ]
    return [", ".join(figures), *(f"warning: {path}: {warning}" for warning in trace.warnings)]
