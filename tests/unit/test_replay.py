"""The replay loop: what it tells allocators and devices, and what it reports."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from trace_builder import TraceBuilder

from movie import _core
from movie.evaluate.columns import columns_of
from movie.evaluate.replay import replay
from movie.trace.model import Action

MIB = 1 << 20


def reserved(trace: TraceBuilder, **arguments) -> float:
    """Peak reserved by native, MiB."""
    result = replay(trace.build(), **arguments)
    assert result.completed, result.failure
    return result.peak_reserved / MIB


# --- when a freed block may be used again -----------------------------------------------------------------------------


@pytest.mark.parametrize("lag", [0, 1000, None])
def test_an_ordinary_free_serves_the_own_stream_at_once(lag):
    t = TraceBuilder()
    for _ in range(3):
        t.free(t.alloc(20 * MIB))
    assert reserved(t, lag=lag) == 20


@pytest.mark.parametrize("lag", [0, None])
def test_a_free_in_two_steps_serves_from_the_row_of_the_second(lag):
    t = TraceBuilder()
    a = t.alloc(20 * MIB)
    t.free_requested(a)
    b = t.alloc(20 * MIB)  # a still waits, whatever the lag
    t.free(b)
    t.free_completed(a)
    t.alloc(20 * MIB)
    t.alloc(20 * MIB)  # by now both serve again
    assert reserved(t, lag=lag) == 40


def test_without_the_second_step_a_block_never_serves_again():
    t = TraceBuilder()
    t.free_requested(t.alloc(20 * MIB))
    for _ in range(3000):
        t.free(t.alloc(512))
    t.alloc(20 * MIB)
    assert reserved(t, lag=0) == 42


def test_marks_between_the_two_steps_do_not_separate_them():
    t = TraceBuilder()
    a = t.alloc(20 * MIB)
    t.free_requested(a)
    t.row(Action.MARK)
    t.free_completed(a)
    t.alloc(20 * MIB)
    result = replay(t.build())
    assert result.driver["event_record"] == 0
    assert result.peak_reserved == 20 * MIB


def test_anonymous_streams_are_used_again():
    t = TraceBuilder()
    for _ in range(50):
        a = t.alloc(20 * MIB)
        t.free_requested(a)
        b = t.alloc(30 * MIB)
        t.free_completed(a)
        t.free(b)
    result = replay(t.build())
    assert result.driver["event_record"] == 50
    assert result.peak_reserved == 50 * MIB


@pytest.mark.parametrize(("lag", "expected"), [(0, 20), (4, 20), (5, 40), (None, 40)])
def test_uses_of_other_streams_lag_where_no_completion_is_recorded(lag, expected):
    t = TraceBuilder(completions_recorded=False)
    a = t.alloc(20 * MIB)
    t.use(a, 1)
    t.free_requested(a)  # with the next three, four rows after the use
    t.alloc(512)
    t.alloc(512)
    t.alloc(20 * MIB)
    assert reserved(t, lag=lag) - 2 == expected


def test_sync_ends_all_lags():
    t = TraceBuilder(completions_recorded=False)
    a = t.alloc(20 * MIB)
    t.use(a, 1)
    t.free_requested(a)
    t.row(Action.SYNC)
    t.alloc(20 * MIB)
    assert reserved(t, lag=10**6) == 20


def test_a_pending_start_block_counts_for_the_allocator_but_not_as_requested():
    t = TraceBuilder()
    a = t.start(20 * MIB, pending=True)
    t.start(1 * MIB)
    t.alloc(20 * MIB)
    t.free_completed(a)
    t.alloc(20 * MIB)
    result = replay(t.build())
    assert result.peak_reserved == 42 * MIB
    assert result.peak_requested == 41 * MIB


# --- what is reported -------------------------------------------------------------------------------------------------


def test_start_blocks_come_first():
    t = TraceBuilder()
    a = t.start(30 * MIB)
    t.free(a)
    t.alloc(30 * MIB)
    result = replay(t.build())
    assert result.peak_reserved == result.peak_requested == 30 * MIB
    assert result.utilization == 1
    assert result.driver["malloc"] == 1


def test_running_out_of_memory_names_the_row():
    t = TraceBuilder()
    t.alloc(30 * MIB)
    t.row(Action.SNAPSHOT)
    t.alloc(30 * MIB)
    t.alloc(512)
    result = replay(t.build(), memory=50 * MIB)
    assert not result.completed
    assert result.failed_at == 2
    assert "30.00 MiB" in result.failure
    assert result.retries == 1
    assert result.peak_requested == 30 * MIB


def test_a_start_state_that_does_not_fit_says_so():
    t = TraceBuilder()
    t.start(30 * MIB)
    t.start(30 * MIB)
    result = replay(t.build(), memory=50 * MIB)
    assert not result.completed
    assert "start" in result.failure


def test_driver_time_is_told_apart():
    t = TraceBuilder()
    a = t.alloc(10 * MIB)  # 700 us
    t.alloc(30 * MIB)  # 700 us: the first peak
    t.free(a)
    for _ in range(8):
        t.row(Action.SNAPSHOT)
    t.row(Action.EMPTY_CACHE)  # 1000 us
    t.alloc(5 * MIB)  # 700 us
    result = replay(t.build())
    assert result.driver_seconds == pytest.approx(0.0031)
    assert result.driver_seconds_to_first_peak == pytest.approx(0.0014)
    assert result.driver_seconds_last_quarter == pytest.approx(0.0017)


def test_a_quarter_of_the_rows_is_exact():
    t = TraceBuilder()
    for size in (10, 12, 14, 16):
        t.alloc(size * MIB)
    assert replay(t.build()).driver_seconds_last_quarter == pytest.approx(0.0007)


@pytest.mark.parametrize(("allocator", "delay"), [("expandable", 0), ("movie-lean", 6)])
def test_what_waits_cost_streams_that_run_side_by_side(allocator, delay):
    """Six rows on one stream and two on another, each as long as three, so that both are busy for as long.

    Who takes memory of the first stream for the second makes it wait for the first one's end.
    """
    t = TraceBuilder()
    for _ in range(3):
        t.free(t.alloc(20 * MIB, stream=1))
    t.free(t.alloc(20 * MIB, stream=7))
    result = replay(t.build(), allocator)
    assert result.main_rows == 6
    assert result.delayed_rows == pytest.approx(delay)
    assert (result.stalled_rows > 0) == (delay > 0)
    assert replay(t.build(), allocator, lag=0).delayed_rows == 0


def test_what_is_held_after_empty_cache():
    t = TraceBuilder()
    a = t.alloc(30 * MIB)
    t.alloc(12 * MIB)
    t.row(Action.EMPTY_CACHE)
    t.free(a)
    t.row(Action.EMPTY_CACHE)
    result = replay(t.build())
    assert result.reserved_after_empty_cache == [42 * MIB, 12 * MIB]
    assert result.live_after_empty_cache == [42 * MIB, 12 * MIB]
    assert result.end_reserved == 12 * MIB


@pytest.mark.parametrize("reclaim", [True, False])
def test_other_owners_get_idle_memory_if_they_ask(reclaim):
    t = TraceBuilder()
    t.free(t.alloc(30 * MIB))
    t.row(Action.EXTERNAL, 40 * MIB)
    t.row(Action.EXTERNAL_FREE, 40 * MIB)
    t.alloc(50 * MIB)
    result = replay(t.build(), memory=60 * MIB, reclaim=reclaim)
    assert result.completed is reclaim
    assert result.reserved_at_external == [0 if reclaim else 30 * MIB]
    if not reclaim:
        assert result.failed_at == 3
        assert "another owner" in result.failure


def test_reclaim_is_not_asked_for_more_than_is_missing():
    t = TraceBuilder()
    t.free(t.alloc(30 * MIB))
    t.row(Action.EXTERNAL, 20 * MIB)
    result = replay(t.build(), memory=60 * MIB)
    assert result.reserved_at_external == [30 * MIB]


@pytest.mark.parametrize("lendable", [(), (1,)])
def test_lendable_pools(lendable):
    t = TraceBuilder()
    t.free(t.alloc(40 * MIB, pool=1))
    t.alloc(40 * MIB)
    assert replay(t.build(), memory=40 * MIB, lendable=lendable).completed is bool(lendable)


def test_unusable_bytes_at_the_peak():
    t = TraceBuilder()
    t.free(t.alloc(30 * MIB))
    t.free(t.alloc(20 * MIB, stream=1))
    t.alloc(40 * MIB - 100)
    t.row(Action.EMPTY_CACHE)
    result = replay(t.build())
    assert result.unusable_at_peak == {
        "none": 0,
        "hard": 0,
        "soft": 30 * MIB,
        "stream": 20 * MIB,
        "pool": 0,
        "rounding": 100,
    }
    assert sum(result.unusable_at_peak.values()) + 40 * MIB - 100 == result.peak_reserved


def test_the_timeline_loses_no_peak():
    t = TraceBuilder()
    for i in range(1000):
        t.free(t.alloc((1 + i % 77) * 512))
    t.free(t.alloc(50 * MIB))
    t.row(Action.EMPTY_CACHE)
    for _ in range(500):
        t.free(t.alloc(512))
    result = replay(t.build(), samples=20)
    rows, requested, held = zip(*result.timeline, strict=True)
    assert 15 <= len(rows) <= 25
    assert rows[-1] == len(t.build()) - 1
    assert max(requested) == result.peak_requested == 50 * MIB
    assert max(held) == result.peak_reserved
    assert held[-1] == 2 * MIB


def test_progress_is_called_and_may_raise():
    t = TraceBuilder()
    for _ in range(10_000):
        t.free(t.alloc(512))
    seen: list[int] = []
    replay(t.build(), progress=seen.append)
    assert seen == sorted(seen)
    assert len(seen) > 3

    def stop(row: int) -> None:
        if row > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replay(t.build(), progress=stop)


def test_the_same_columns_serve_many_replays():
    t = TraceBuilder()
    t.free(t.alloc(MIB))
    trace = t.build()
    columns = columns_of(trace)
    assert replay(trace, columns=columns).peak_reserved == replay(trace, "bound", columns=columns).peak_reserved + MIB


# --- the floor --------------------------------------------------------------------------------------------------------


def test_the_floor_keeps_what_a_pool_once_needed_until_it_is_released():
    t = TraceBuilder()
    t.free(t.alloc(30 * MIB, pool=1))
    a = t.alloc(20 * MIB)
    t.alloc(5 * MIB, pool=1)
    t.row(Action.RELEASE_POOL, pool=1)
    t.free(a)
    t.alloc(60 * MIB)
    result = replay(t.build(), "bound")
    assert result.peak_reserved == 65 * MIB
    floor = _core.floor_of(columns_of(t.build()))
    assert (floor.requested, floor.peak_requested, floor.row) == (65 * MIB, 65 * MIB, 8)


@st.composite
def histories(draw):
    t = TraceBuilder()
    live: list[int] = []
    for _ in range(draw(st.integers(0, 3))):
        live.append(t.start(draw(st.integers(1, 2000)), pool=draw(st.integers(0, 2))))
    for _ in range(draw(st.integers(1, 30))):
        kind = draw(st.integers(0, 5))
        if kind <= 2 or (kind <= 4 and not live):
            live.append(t.alloc(draw(st.integers(1, 2000)), pool=draw(st.integers(0, 2))))
        elif kind <= 4:
            t.free(live.pop(draw(st.integers(0, len(live) - 1))))
        else:
            t.row(Action.RELEASE_POOL, pool=draw(st.integers(1, 2)))
    return t.build()


def plain_floor(trace) -> tuple[int, int]:
    """By the definition, from lists."""
    live = {i: (int(trace.start.bytes[i]), int(trace.start.pool[i])) for i in range(len(trace.start))}
    high, owned = {1: 0, 2: 0}, {1: True, 2: True}
    most = most_allocated = 0

    def account() -> None:
        nonlocal most, most_allocated
        of = {pool: sum(size for size, where in live.values() if where == pool) for pool in (0, 1, 2)}
        for pool in (1, 2):
            high[pool] = max(high[pool], of[pool]) if owned[pool] else of[pool]
        most = max(most, of[0] + high[1] + high[2])
        most_allocated = max(most_allocated, sum((size + 511) // 512 * 512 for size, _ in live.values()))

    account()
    for action, block, size, pool in zip(
        trace.action.tolist(), trace.id.tolist(), trace.bytes.tolist(), trace.pool.tolist(), strict=True
    ):
        if action == Action.ALLOC:
            live[block] = (size, pool)
            if pool:
                owned[pool] = True
        elif action == Action.FREE_REQUESTED:
            del live[block]
        elif action == Action.RELEASE_POOL:
            owned[pool] = False
        account()
    return most, most_allocated


@given(histories())
def test_the_floor_is_what_its_definition_says(trace):
    floor = _core.floor_of(columns_of(trace))
    assert (floor.requested, floor.peak_allocated) == plain_floor(trace)
    result = replay(trace)
    assert result.peak_requested == floor.requested


def test_bound_on_a_card_that_is_too_small():
    t = TraceBuilder()
    t.alloc(30 * MIB)
    t.alloc(30 * MIB)
    assert replay(t.build(), "bound", memory=60 * MIB).completed
    result = replay(t.build(), "bound", memory=59 * MIB)
    assert not result.completed
    assert result.failed_at == 1
    with pytest.raises(ValueError, match="no options"):
        replay(t.build(), "bound", {"tie": "segment"})


# --- refusals ---------------------------------------------------------------------------------------------------------


def arrays(**changes):
    columns = {
        "action": np.array([0, 1, 2], np.uint8),
        "id": np.zeros(3, np.int64),
        "bytes": np.full(3, 512, np.int64),
        "stream": np.zeros(3, np.int64),
        "pool": np.zeros(3, np.int64),
        "address": np.zeros(3, np.uint64),
        "start_bytes": np.zeros(0, np.int64),
        "start_stream": np.zeros(0, np.int64),
        "start_pool": np.zeros(0, np.int64),
        "start_pending": np.zeros(0, np.bool_),
        "ids": 1,
        "completions_recorded": True,
    }
    return columns | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"action": np.array([0, 1], np.uint8)}, "differ in length"),
        ({"start_pool": np.zeros(1, np.int64)}, "start state differ"),
        ({"ids": 5}, "ids"),
        ({"action": np.array([0, 0, 2], np.uint8)}, "row 1: block 0 is allocated twice"),
        ({"action": np.array([1, 0, 2], np.uint8)}, "row 0: block 0 is freed but not alive"),
        ({"action": np.array([0, 1, 1], np.uint8)}, "row 2: block 0 is freed but not alive"),
        ({"action": np.array([0, 2, 1], np.uint8)}, "row 1: block 0 ends"),
        ({"action": np.array([0, 1, 99], np.uint8)}, "row 2: an unknown action"),
        ({"id": np.array([0, -1, 0], np.int64)}, "row 1: block -1"),
        ({"id": np.array([0, 7, 0], np.int64)}, "row 1: block 7"),
        ({"bytes": np.array([-5, 512, 512], np.int64)}, "row 0: an allocation of -5 bytes"),
        ({"pool": np.array([-1, 0, 0], np.int64)}, "row 0: a pool below 0"),
        ({"action": np.array([0, 6, 14], np.uint8), "bytes": np.array([1, 0, 0], np.int64)}, "row 1: another owner"),
        ({"action": np.array([0, 15, 14], np.uint8)}, "row 1: only pools above 0"),
    ],
)
def test_columns_that_contradict_each_other_are_refused(changes, message):
    columns = _core.TraceColumns(**arrays(**changes))
    with pytest.raises(ValueError, match=message):
        columns.check()
    with pytest.raises(ValueError, match=message):
        _core.replay(columns, "native")
    with pytest.raises(ValueError, match=message):
        _core.floor_of(columns)


@pytest.mark.parametrize(
    "changes",
    [
        {"action": np.array([0, 1, 2], np.int64)},  # another type: no silent copy
        {"bytes": np.zeros(6, np.int64)[::2]},  # not contiguous
        {"bytes": np.zeros((3, 1), np.int64)},
        {"id": [0, 0, 0]},
    ],
)
def test_arrays_of_other_kinds_are_refused(changes):
    with pytest.raises(TypeError):
        _core.TraceColumns(**arrays(**changes))


def test_unknown_names_are_refused():
    t = TraceBuilder()
    t.alloc(1)
    with pytest.raises(ValueError, match="no allocator"):
        replay(t.build(), "nativ")
    with pytest.raises(ValueError, match="no option"):
        replay(t.build(), "native", {"ties": "segment"})
    with pytest.raises(ValueError, match="cheap"):
        replay(t.build(), costs="cheap")


# --- completions that the recorded allocator saw ----------------------------------------------------------------------


def waits_and_reserved(trace: TraceBuilder, **arguments) -> tuple[int, float]:
    result = replay(trace.build(), "movie-lean", **arguments)
    assert result.completed, result.failure
    return result.driver["stream_wait"], result.peak_reserved / MIB


def two_blocks_that_another_stream_used() -> TraceBuilder:
    """Freed one after the other: events 1 and 2 of stream 2 stand for that."""
    t = TraceBuilder()
    blocks = [t.alloc(size * MIB, 1) for size in (20, 30)]
    for block in blocks:
        t.use(block, 2)
        t.free(block)
    return t


@pytest.mark.parametrize(("seen", "waits"), [([], 1), ([1], 0), ([2], 0), ([1, 2], 0)])
def test_an_event_completes_when_the_recording_saw_it(seen, waits):
    """A stream's work is done in order: that the second is done says the same of the first."""
    t = two_blocks_that_another_stream_used()
    for event in seen:
        t.row(Action.SEEN, event, stream=2)
    t.alloc(20 * MIB, 1)
    assert waits_and_reserved(t, lag=None, as_seen=True) == (waits, 50)


@pytest.mark.parametrize(("seen", "waits"), [(1, 1), (2, 0)])
def test_an_event_says_nothing_of_later_ones(seen, waits):
    t = two_blocks_that_another_stream_used()
    t.row(Action.SEEN, seen, stream=2)
    t.alloc(30 * MIB, 1)
    assert waits_and_reserved(t, lag=None, as_seen=True) == (waits, 50)


def test_what_was_seen_later_does_not_help_before():
    t = two_blocks_that_another_stream_used()
    t.alloc(20 * MIB, 1)
    t.row(Action.SEEN, 2, stream=2)
    t.alloc(30 * MIB, 1)
    assert waits_and_reserved(t, lag=None, as_seen=True) == (1, 50)


@pytest.mark.parametrize(("lag", "waits"), [(None, 1), (0, 0)])
def test_without_as_seen_the_lag_decides(lag, waits):
    t = two_blocks_that_another_stream_used()
    t.row(Action.SEEN, 2, stream=2)
    t.alloc(20 * MIB, 1)
    assert waits_and_reserved(t, lag=lag) == (waits, 50)


def test_an_event_of_another_stream_or_one_that_never_was_changes_nothing():
    t = two_blocks_that_another_stream_used()
    t.row(Action.SEEN, 1, stream=3)
    t.row(Action.SEEN, 99, stream=1)
    t.alloc(20 * MIB, 1)
    assert waits_and_reserved(t, lag=None, as_seen=True) == (1, 50)
