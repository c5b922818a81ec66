"""Traces from what a watched program has left."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from movie.capture.program import Ended, Recorded, Watching
from movie.errors import InputError
from movie.trace import Trace, TraceError, read_trace

_FAILED = "the recorded program ended with exit code {code}: the trace tells of what it did until then"


def traces_of(recorded: Recorded, ended: Ended, watching: Watching) -> list[Trace]:
    """One trace for each card whose memory was used.

    How it was recorded stands in `header`. Where the program failed, `complete` is false and a warning says so. Raises
    InputError for a recording that cannot be read.
    """
    if recorded.snapshot is None:
        return []
    try:
        traces = read_trace(recorded.snapshot)
    except TraceError as error:
        raise InputError(f"the recording cannot be read: {error}") from None
    warnings = [_FAILED.format(code=ended.exit_code)] if ended.exit_code != 0 else []
    others = len(ended.recorded) - 1
    if others:
        warnings.append(f"{others} more processes used a card: this is process {recorded.process}")
    return [
        replace(
            trace,
            header=_header(trace, recorded.facts, watching),
            complete=trace.complete and ended.exit_code == 0,
            warnings=(*trace.warnings, *warnings),
        )
        for trace in traces
        if trace.allocations or len(trace.start)
    ]


def _header(trace: Trace, facts: Mapping[str, Any], watching: Watching) -> dict[str, str]:
    card = facts["devices"][trace.device]
    header = {
        "recorded by": "movie capture",
        "torch": facts["torch"],
        "cuda": facts["cuda"],
        "python": facts["python"],
        "card": card["name"],
        "card memory": str(card["memory"]),
        "card capability": card["capability"],
        "card multiprocessors": str(card["multiprocessors"]),
        "peak reserved": str(card["peak_reserved"]),
        "retries": str(card["retries"]),
        "out of memory": str(card["ooms"]),
        "steps": str(facts["steps"]),
    }
    if facts["world_size"]:
        header["rank"] = f"{facts['rank'] or 0} of {facts['world_size']}"
    phantom = watching.phantom
    header["phantom"] = "no" if phantom is None else "yes"
    if phantom is not None:
        header |= {"lag": str(phantom.lag), "seed": str(phantom.seed)}
    return header
