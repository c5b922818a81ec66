"""One trace through one allocator on a model device: what would it have reserved, and at what price?"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from movie import _core
from movie.evaluate.columns import columns_of
from movie.evaluate.settings import native_options
from movie.trace.model import Trace

OF_PYTORCH = ("native", "expandable")  # follow the settings that a trace was recorded with
BOUND = "bound"  # no allocator: the floor that none can go below
AMPLE = 1 << 46  # bytes of a card on which nothing fails
VIEW_COUNTERS = ("created", "edited", "reused", "evicted")
CAUSES = ("none", "hard", "soft", "stream", "pool", "rounding")  # why reserved bytes are not in use


@dataclass(frozen=True)
class ReplayResult:
    """What an allocator made of a trace. Sizes in bytes, places as rows of the trace, times in modelled seconds."""

    allocator: str
    options: Mapping[str, str]
    memory: int | None  # of the card; None: ample
    completed: bool
    failed_at: int | None = None  # the row that could not be served
    failure: str = ""  # why: the allocator's own report
    peak_requested: int = 0  # live bytes as asked for, at most; isolated pools are kept apart
    peak_reserved: int = 0  # physical bytes, counted by the device
    end_reserved: int = 0
    retries: int = 0  # requests that made the allocator flush what it had cached, or wait
    driver: Mapping[str, int] = field(default_factory=dict)  # calls by name
    driver_last_quarter: Mapping[str, int] = field(default_factory=dict)  # of these, in the last quarter of the rows
    driver_seconds: float = 0.0
    driver_seconds_last_quarter: float = 0.0  # of the rows
    driver_seconds_to_first_peak: float = 0.0  # until the requested bytes first reach their peak
    stalled_rows: int = 0  # rows for which streams or the host were made to wait, summed
    delayed_rows: float = 0.0  # by which waits delay the device, streams running side by side; rows of the main stream
    delayed_rows_last_quarter: float = 0.0
    main_rows: int = 0  # allocations and frees of the stream that has most
    views: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(VIEW_COUNTERS, 0))
    views_last_quarter: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(VIEW_COUNTERS, 0))
    unusable_at_peak: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(CAUSES, 0))
    reserved_after_empty_cache: Sequence[int] = ()  # one entry for each empty_cache row
    live_after_empty_cache: Sequence[int] = ()
    reserved_at_external: Sequence[int] = ()  # one entry for each external row, after any reclaim
    host_ns_per_event: float = 0.0  # processor time of an alloc or free, replay loop (and validator if on) included
    timeline: Sequence[tuple[int, int, int]] = ()  # (row, requested, reserved): the highest since the entry before

    @property
    def utilization(self) -> float:
        """Peak requested over peak reserved; 1 where nothing was reserved."""
        return self.peak_requested / self.peak_reserved if self.peak_reserved else 1.0


def replay(
    trace: Trace,
    allocator: str = "native",
    options: Mapping[str, str] | None = None,
    *,
    memory: int | None = None,
    lag: int | None = 1000,
    costs: str = "per-call",
    seed: int = 0,
    validate: bool = True,
    as_seen: bool = False,
    reclaim: bool = True,
    lendable: Sequence[int] = (),
    samples: int = 0,
    progress: Callable[[int], object] | None = None,
    columns: _core.TraceColumns | None = None,
) -> ReplayResult:
    """Replays `trace` under an allocator of the catalogue, or under "bound", the floor.

    The start blocks are allocated first, in their order, then come the rows. `options`: texts by name, sizes as plain
    numbers of bytes; PyTorch's allocators also take the settings recorded with the trace, where `options` says nothing
    else. `memory`: bytes of the card, None for an ample one. `lag`: rows (alloc or free) until queued work is done,
    None for never; `seed` other than 0 draws each piece of work's lag between 0 and twice as much. `costs`: the table
    of what driver calls cost, "per-call" or "per-page". `validate`: watch every call. `as_seen`: events complete when
    the trace's `seen` rows say so, whatever the lag, and addresses are given out in the order in which cards do: of use
    for the allocator that recorded them. `reclaim`: other owners of the card ask the allocator to give idle memory back
    before they take theirs. `lendable`: pools marked as such. `samples`: how many timeline entries to keep, about.
    `progress`: called with the row every few thousand rows; may raise to stop. `columns`: `columns_of(trace)`, for
    callers that replay a trace many times.

    Raises ValueError for an unknown allocator, option, value or cost table and for traces whose rows contradict each
    other, ValidationError if the allocator breaks an invariant.
    """
    columns = columns_of(trace) if columns is None else columns
    if allocator == BOUND:
        return _floor(columns, options, memory)
    chosen = dict(options or {})
    if allocator in OF_PYTORCH:
        chosen = native_options(trace) | chosen
    device = _core.ModelOptions()
    device.capacity = AMPLE if memory is None else memory
    device.costs = costs
    device.lag = -1 if lag is None else lag
    device.seed = seed
    device.downwards = as_seen
    result = _core.replay(
        columns,
        allocator,
        chosen,
        device,
        validate=validate,
        as_seen=as_seen,
        reclaim=reclaim,
        lendable=list(lendable),
        samples=samples,
        progress=progress,
    )
    return ReplayResult(
        allocator=allocator,
        options=chosen,
        memory=memory,
        completed=result.completed,
        failed_at=None if result.completed else result.failed_at,
        failure=result.failure,
        peak_requested=result.peak_requested,
        peak_reserved=result.peak_reserved,
        end_reserved=result.end_reserved,
        retries=result.retries,
        driver=result.ledger.calls(),
        driver_last_quarter=_late(result) if result.completed else {},
        driver_seconds=result.ledger.seconds,
        driver_seconds_last_quarter=result.seconds_last_quarter,
        driver_seconds_to_first_peak=result.seconds_to_first_peak,
        stalled_rows=result.stalled_rows,
        delayed_rows=result.delayed_rows,
        delayed_rows_last_quarter=result.delayed_rows_last_quarter,
        main_rows=result.main_rows,
        views=result.views,
        views_last_quarter=result.views_last_quarter,
        unusable_at_peak=result.unusable_at_peak,
        reserved_after_empty_cache=result.reserved_after_empty_cache,
        live_after_empty_cache=result.live_after_empty_cache,
        reserved_at_external=result.reserved_at_external,
        host_ns_per_event=result.host_ns_per_event,
        timeline=result.timeline,
    )


def _late(result: _core.ReplayResult) -> dict[str, int]:
    before = result.before_last_quarter.calls()
    return {call: count - before[call] for call, count in result.ledger.calls().items()}


def _floor(columns: _core.TraceColumns, options: Mapping[str, str] | None, memory: int | None) -> ReplayResult:
    """The floor as if an allocator had reached it, with no driver calls."""
    if options:
        raise ValueError(f"{BOUND} takes no options")
    floor = _core.floor_of(columns)
    fits = memory is None or floor.requested <= memory
    return ReplayResult(
        allocator=BOUND,
        options={},
        memory=memory,
        completed=fits,
        failed_at=None if fits else max(floor.row, 0),
        failure="" if fits else f"{floor.requested} bytes are alive at the same time",
        peak_requested=floor.requested,
        peak_reserved=floor.requested,
    )
