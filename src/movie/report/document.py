"""The JSON document of `movie replay --json`, and its parts: a contract, so fields are only ever added."""

from typing import Any

from movie.evaluate.comparison import Comparison, Facts, Run
from movie.evaluate.replay import CAUSES, VIEW_COUNTERS, ReplayResult

DRIVER_CALLS = (
    "create",
    "release",
    "map",
    "unmap",
    "set_access",
    "reserve",
    "free",
    "malloc",
    "mfree",
    "synchronize",
    "event_record",
    "stream_wait",
)


def document(comparison: Comparison) -> dict[str, Any]:
    """One trace file under several allocators, as plain data for `json.dumps`.

    Sizes are bytes, `memory` is null where the card was ample, `failed_at` is a row of the trace or null.
    """
    return {
        "trace": trace_document(comparison.facts),
        "costs": comparison.conditions.costs,
        "memory": comparison.memory,
        "results": [_result(run) for device in comparison.devices for run in device.runs],
    }


def trace_document(facts: Facts) -> dict[str, Any]:
    """What a trace file is, sizes in bytes."""
    return {
        "path": facts.path,
        "events": facts.events,
        "allocations": facts.allocations,
        "streams": facts.streams,
        "devices": facts.devices,
        "peak_requested": facts.peak_requested,
        "peak_allocated": facts.peak_allocated,
        "start_live": facts.start_live,
        "complete": facts.complete,
    }


def views_document(result: ReplayResult) -> dict[str, int]:
    """Views by what became of them, and those made or edited in the last quarter of the rows."""
    return {
        **{counter: result.views[counter] for counter in VIEW_COUNTERS},
        "last_quarter": result.views_last_quarter["created"] + result.views_last_quarter["edited"],
    }


def _result(run: Run) -> dict[str, Any]:
    return {
        "allocator": run.allocator,
        "device": run.device,
        "completed": run.result.completed,
        "failed_at": None if run.result.completed else run.result.failed_at,
        "peak_reserved": run.result.peak_reserved,
        "utilization": run.result.utilization,
        "retries": run.result.retries,
        "driver": {call: run.result.driver.get(call, 0) for call in DRIVER_CALLS},
        "stalled_rows": run.result.stalled_rows,
        "driver_seconds": run.result.driver_seconds,
        "driver_seconds_last_quarter": run.result.driver_seconds_last_quarter,
        "driver_seconds_to_first_peak": run.result.driver_seconds_to_first_peak,
        "views": views_document(run.result),
        "unusable_at_peak": {cause: run.result.unusable_at_peak[cause] for cause in CAUSES},
        "host_ns_per_event": run.result.host_ns_per_event,
    }
