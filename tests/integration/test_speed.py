"""The benchmarks' figures against generous limits: all times are processor time, and the best of several."""

import numpy as np
import pytest
from combine_time import REQUEST, extents
from speed import ALLOCATORS, LIVE_BLOCKS, best_of_three, events_only, first_events, twice_with_live_blocks

from movie import _core
from movie.evaluate.replay import replay
from movie.trace import read_trace
from movie.trace.model import Action

# On a quiet machine of today: 4 to 8 million.
LEAST_EVENTS_A_SECOND = 500_000
# Microseconds; mapping the pages that are chosen costs a hundred times as much.
MOST_FOR_A_CHOICE = 1500


@pytest.fixture(scope="module")
def once(data_dir):
    [trace] = read_trace(data_dir / "recordings" / "rlhf_torch_R_b24_fix.pickle.gz")
    return events_only(trace)


@pytest.fixture(scope="module")
def double(once):
    return twice_with_live_blocks(once, LIVE_BLOCKS).check()


def test_the_trace_is_what_it_should_be(double):
    counted = np.isin(double.action, (Action.ALLOC, Action.FREE_COMPLETED))
    assert np.count_nonzero(counted) > 1_000_000
    assert len(double.start) == LIVE_BLOCKS
    assert not np.isin(double.id, np.arange(LIVE_BLOCKS)).any()  # they live throughout
    assert double.start.bytes.max() <= 16 * 1024


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_events_a_second(double, allocator):
    assert 1e9 / best_of_three(double, allocator) >= LEAST_EVENTS_A_SECOND


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_the_cost_of_an_event_at_most_doubles(double, allocator):
    few, many = (best_of_three(first_events(double, events), allocator) for events in (10_000, 1_000_000))
    assert many <= 2 * few, f"{few:.0f} ns an event at 10,000 events, {many:.0f} at 1,000,000"


def test_live_blocks_do_not_slow_down(once, double):
    """The same events with no small blocks alive, and with all: at most three times as much an event."""
    for allocator in ("movie", "movie-lean"):
        alone, among = (best_of_three(first_events(trace, 100_000), allocator) for trace in (once, double))
        assert among <= 3 * alone, (allocator, alone, among)


@pytest.mark.parametrize(("count", "sizes"), [(256, 32), (512, 64)])
def test_a_choice_of_4_gib_is_quick(count, sizes):
    random = np.random.default_rng(7)
    instances = [extents(random, count, sizes) for _ in range(200)]
    for parts in instances:
        assert len(parts) == count
        assert len({pages for pages, _, _ in parts}) >= sizes
    times = [min(_core.time_combine(parts, REQUEST) for _ in range(2)) for parts in instances]
    assert np.percentile(times, 99) <= MOST_FOR_A_CHOICE
    assert np.median(times) <= MOST_FOR_A_CHOICE / 2


def test_time_is_that_of_the_replay(double):
    """The figure behind all of these grows with the work and is no constant."""
    few = first_events(double, 10_000)
    plain = min(replay(few, "movie", validate=False).host_ns_per_event for _ in range(3))
    watched = min(replay(few, "movie", validate=True).host_ns_per_event for _ in range(3))
    assert 0 < plain < watched
