"""What was measured of a cell, as plain data: the rows of `movie bench --json`, a contract: fields are only added.

Under `native` and `expandable` the peaks, the utilization and the retries are those of real runs on a phantom
(`source` says `run`); all else, and everything of the other allocators, comes from replays of the native run
(`replay`). What the models of these two reserve for that run is `replayed_reserved`. `curve` has cards of some sizes,
`on_card_of` the smallest cards of the rivals (for ours alone): what a run comes to where memory is scarce.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from movie.bench.cells import Cell
from movie.bench.iteration import SHARES, Iteration
from movie.evaluate.fit import AllocatorFit, Point
from movie.evaluate.replay import ReplayResult
from movie.report.document import DRIVER_CALLS

RIVALS = ("native", "expandable", "gmlake")
OURS = ("movie", "movie-lean")
ALLOCATORS = (*RIVALS, *OURS, "bound")


@dataclass(frozen=True)
class RealRun:
    """A run under an allocator of PyTorch. Sizes in bytes."""

    peak_requested: int
    peak_reserved: int
    retries: int


@dataclass(frozen=True)
class Replayed:
    """An allocator's replay on an ample card, its search for the smallest, and its curve.

    `host_ns`: of an event, unvalidated. `on_card_of`: the runs on the smallest cards of rivals, where these have one.
    """

    ample: ReplayResult
    fit: AllocatorFit
    host_ns: float
    on_card_of: Mapping[str, ReplayResult] = field(default_factory=dict)
    curve: Sequence[Point] = ()


def rows_of(
    cell: Cell,
    real: Mapping[str, RealRun],
    replays: Mapping[str, Replayed],
    iteration: Iteration | None,
    streams: int = 1,
) -> list[dict[str, Any]]:
    """One row for each allocator in `replays`. `iteration`: None where nobody counted its operations."""
    native = replays.get("native")
    native_host = native.host_ns if native else 0.0
    return [
        {
            "cell": cell.name,
            **cell.as_data(),
            "streams": streams,
            "allocator": name,
            **_found(real.get(name), found, iteration, native_host),
        }
        for name, found in replays.items()
    ]


def _found(real: RealRun | None, found: Replayed, iteration: Iteration | None, native_host: float) -> dict[str, Any]:
    ample = found.ample
    requested = real.peak_requested if real else ample.peak_requested
    reserved = real.peak_reserved if real else ample.peak_reserved
    return {
        "source": "run" if real else "replay",
        "completed": ample.completed,
        "peak_requested": requested,
        "peak_reserved": reserved,
        "utilization": requested / reserved if reserved else 1.0,
        "replayed_reserved": ample.peak_reserved,
        "smallest_card": found.fit.smallest_card,
        "monotone": found.fit.monotone,
        "retries": real.retries if real else ample.retries,
        **_prices(ample, iteration),
        "host_ns_per_event": found.host_ns,
        "host_relative": found.host_ns / native_host if native_host and found.host_ns else None,
        "operations": iteration.operations if iteration else None,
        "device_seconds": iteration.device_seconds() if iteration else None,
        "on_smallest_card": _there(found.fit.there, iteration),
        "on_card_of": {rival: _there(result, iteration) for rival, result in found.on_card_of.items()},
        "curve": [_point(point, iteration) for point in found.curve],
    }


def _there(result: ReplayResult | None, iteration: Iteration | None) -> dict[str, Any] | None:
    """The run on a card that is just large enough for somebody; None if it does not complete there."""
    if result is None or not result.completed:
        return None
    return {"peak_reserved": result.peak_reserved, "retries": result.retries, **_prices(result, iteration)}


def _point(point: Point, iteration: Iteration | None) -> dict[str, Any]:
    """A card of some size. Where the run did not complete there are no prices."""
    result = point.result
    known = {"factor": float(point.factor), "card": point.card, "completed": result.completed}
    if not result.completed:
        return known
    return {**known, "peak_reserved": result.peak_reserved, "retries": result.retries, **_prices(result, iteration)}


def _prices(result: ReplayResult, iteration: Iteration | None) -> dict[str, Any]:
    """Calls by name, modelled seconds, waits. Seconds of iterations are null where their operations are not known."""
    at = {str(share): iteration.seconds(result, share) if iteration else None for share in SHARES}
    late_at = {str(share): iteration.late_seconds(result, share) if iteration else None for share in SHARES}
    return {
        "driver": {call: result.driver.get(call, 0) for call in DRIVER_CALLS},
        "driver_seconds": result.driver_seconds,
        "driver_seconds_last_quarter": result.driver_seconds_last_quarter,
        "stalled_rows": result.stalled_rows,
        "delayed_rows": result.delayed_rows,
        "delayed_rows_last_quarter": result.delayed_rows_last_quarter,
        "stall_seconds": iteration.stall_seconds(result) if iteration else None,
        "stall_seconds_last_quarter": iteration.late_stall_seconds(result) if iteration else None,
        "stall_seconds_at_most": iteration.stall_seconds_at_most(result) if iteration else None,
        "iteration_seconds": iteration.seconds(result) if iteration else None,
        "iteration_seconds_last_quarter": iteration.late_seconds(result) if iteration else None,
        "iteration_seconds_at": at,
        "iteration_seconds_last_quarter_at": late_at,
    }
