"""What was measured of a cell, as plain data: the rows of `movie bench --json`, a contract: fields are only added.

Under `native` and `expandable` the peaks, the utilization and the retries are those of real runs on a phantom (`source`
says `run`); all else, and everything of the other allocators, comes from replays of the native run (`replay`). What the
models of these two reserve for that run is `replayed_reserved`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from movie.bench.cells import Cell
from movie.bench.iteration import SHARES, Iteration
from movie.evaluate.fit import AllocatorFit
from movie.evaluate.replay import ReplayResult
from movie.report.document import DRIVER_CALLS

ALLOCATORS = ("native", "expandable", "gmlake", "movie", "movie-lean", "bound")


@dataclass(frozen=True)
class RealRun:
    """A run under an allocator of PyTorch. Sizes in bytes."""

    peak_requested: int
    peak_reserved: int
    retries: int


@dataclass(frozen=True)
class Replayed:
    """An allocator's replay on an ample card, and its search for the smallest. `host_ns`: an event's, unvalidated."""

    ample: ReplayResult
    fit: AllocatorFit
    host_ns: float


def rows_of(
    cell: Cell, real: Mapping[str, RealRun], replays: Mapping[str, Replayed], iteration: Iteration | None
) -> list[dict[str, Any]]:
    """One row for each allocator in `replays`. `iteration`: None where nobody counted its operations."""
    native = replays.get("native")
    return [
        _row(cell, name, real.get(name), found, iteration, native.host_ns if native else 0.0)
        for name, found in replays.items()
    ]


def _row(
    cell: Cell, allocator: str, real: RealRun | None, found: Replayed, iteration: Iteration | None, native_host: float
) -> dict[str, Any]:
    ample = found.ample
    requested = real.peak_requested if real else ample.peak_requested
    reserved = real.peak_reserved if real else ample.peak_reserved
    return {
        "cell": cell.name,
        **cell.as_data(),
        "allocator": allocator,
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
        "on_smallest_card": _there(found.fit.there, iteration),
    }


def _there(result: ReplayResult | None, iteration: Iteration | None) -> dict[str, Any] | None:
    """The run on the smallest card on which the allocator completes."""
    if result is None:
        return None
    return {"peak_reserved": result.peak_reserved, "retries": result.retries, **_prices(result, iteration)}


def _prices(result: ReplayResult, iteration: Iteration | None) -> dict[str, Any]:
    """Calls by name, modelled seconds, waits. Seconds of iterations are null where their operations are not known."""
    at = {str(share): iteration.seconds(result, share) if iteration else None for share in SHARES}
    return {
        "driver": {call: result.driver.get(call, 0) for call in DRIVER_CALLS},
        "driver_seconds": result.driver_seconds,
        "driver_seconds_last_quarter": result.driver_seconds_last_quarter,
        "stalled_rows": result.stalled_rows,
        "stall_seconds": iteration.stall_seconds(result) if iteration else None,
        "iteration_seconds": iteration.seconds(result) if iteration else None,
        "iteration_seconds_last_quarter": iteration.late_seconds(result) if iteration else None,
        "iteration_seconds_at": at,
    }
