"""Traces from what a watched program has left."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from movie.capture.program import INTERRUPTED, Ended, Recorded, Watching
from movie.errors import InputError
from movie.trace import Trace, TraceError, read_trace


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
    warnings = [f"the program {_end(recorded, ended)}: the trace tells of what it did until then"] * ended.failed
    if other := ended.other_allocator(watching.allocator):
        warnings.append(other)
    others = len(ended.recorded) - 1
    if others:
        warnings.append(
            f"{others} more process{'' if others == 1 else 'es'} used a card: this is process {recorded.process}"
        )
    return [
        replace(
            _streams_numbered(trace),
            header=_header(trace, recorded.facts, watching),
            complete=trace.complete and not ended.failed,
            warnings=(*trace.warnings, *warnings),
        )
        for trace in traces
        if trace.allocations or len(trace.start)
    ]


def _end(recorded: Recorded, ended: Ended) -> str:
    """How a program ended that failed, in words."""
    if ended.exit_code == INTERRUPTED:
        return "was interrupted"
    ran_out = any(device["ooms"] for device in recorded.facts["devices"])
    return f"{'ran out of memory and ' if ran_out else ''}ended with exit code {ended.exit_code}"


def _streams_numbered(trace: Trace) -> Trace:
    """The trace with its streams counted from 1 as they appear; 0 remains the default stream.

    A recorded stream is an address in a process that is gone: it says nothing, and differs from run to run.
    """
    streams = np.concatenate([trace.start.stream, trace.segments.stream, trace.stream])
    handles, first, places = np.unique(streams, return_index=True, return_inverse=True)
    appearing = np.argsort(np.where(handles == 0, -1, first))
    number = np.empty(len(handles), dtype=np.int64)
    number[appearing] = np.arange(len(handles)) + (0 if (handles == 0).any() else 1)
    start, segments, rows = np.split(number[places], np.cumsum([len(trace.start), len(trace.segments)]))
    return replace(
        trace,
        stream=rows,
        start=replace(trace.start, stream=start),
        segments=replace(trace.segments, stream=segments),
    )


def _header(trace: Trace, facts: Mapping[str, Any], watching: Watching) -> dict[str, str]:
    card = facts["devices"][trace.device]
    header = {
        "recorded by": "movie capture",
        "torch": facts["torch"],
        "cuda": facts["cuda"],
        "python": facts["python"],
        "allocator": facts["allocator"],
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
