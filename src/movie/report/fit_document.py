"""The JSON document of `movie fit --json`: a contract, so fields are only ever added."""

from typing import Any

from movie.capture.live_fit import LiveFit
from movie.evaluate.fit import AllocatorFit, Point, TraceFit
from movie.report.document import trace_document, views_document


def fit_document(fit: TraceFit) -> dict[str, Any]:
    """One trace file, as plain data for `json.dumps`. Sizes are bytes; `lag` is null for never."""
    return {
        "trace": trace_document(fit.facts),
        "costs": fit.conditions.costs,
        "lag": fit.conditions.lag,
        "results": [_result(one) for device in fit.devices for one in device.allocators],
    }


def live_fit_document(fit: LiveFit) -> dict[str, Any]:
    """The same of a program that was run: `trace` tells of its recording, `lag` counts launches, nothing is modelled.

    Sizes of cards include `context`, the bytes that a process takes before it allocates.
    """
    card = fit.phantom.card
    return {
        **fit_document(fit),
        "costs": None,
        "card": card.title,
        "context": card.context,
    }


def _result(fit: AllocatorFit) -> dict[str, Any]:
    return {
        "allocator": fit.allocator,
        "device": fit.device,
        "smallest_card": fit.smallest_card,
        "monotone": fit.monotone,
        "fails_above": list(fit.fails_above),
        "retries_there": None if fit.there is None else fit.there.retries,
        "ample_reserved": fit.ample_reserved,
        "curve": [_point(point) for point in fit.curve],
    }


def _point(point: Point) -> dict[str, Any]:
    result = point.result
    return {
        "factor": float(point.factor),
        "card": point.card,
        "completed": result.completed,
        "peak_reserved": result.peak_reserved,
        "retries": result.retries,
        "driver_seconds": result.driver_seconds,
        "driver_seconds_last_quarter": result.driver_seconds_last_quarter,
        "driver_seconds_to_first_peak": result.driver_seconds_to_first_peak,
        "views": views_document(result),
        "stream_waits": result.driver.get("stream_wait", 0),
        "stalled_rows": result.stalled_rows,
    }
