"""The model device: a card that exists on paper, as strict as the driver's documentation, with late events, costs and
faults. Whoever breaks a rule gets RuleViolation and has changed nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from movie import _core

MIB = 1 << 20
PAGE = 2 * MIB
CAPACITY = 64 * PAGE


def device(**options: object) -> _core.ModelDevice:
    chosen = _core.ModelOptions()
    chosen.capacity = CAPACITY
    for name, value in options.items():
        setattr(chosen, name, value)
    return _core.ModelDevice(chosen)


@pytest.fixture
def card() -> _core.ModelDevice:
    return device()


State = tuple[int, ...]


def state(card: _core.ModelDevice) -> State:
    """Everything that a call may change, but the account of calls."""
    return (
        card.mappings,
        card.handles,
        card.reservations,
        card.plain_allocations,
        card.ledger.reserved,
        card.free_bytes,
    )


def mapped_range(card: _core.ModelDevice, pages: int = 1, handle_size: int = PAGE) -> tuple[int, list[int]]:
    """A range with that many handles side by side, accessible."""
    start = card.reserve(pages * handle_size)
    handles = [card.create(handle_size) for _ in range(pages)]
    for i, handle in enumerate(handles):
        card.map(start + i * handle_size, handle_size, handle)
    card.set_access(start, pages * handle_size)
    return start, handles


class Breaks:
    """Expects a violation, and that nothing changed, not even the count of calls."""

    def __init__(self, card: _core.ModelDevice, text: str) -> None:
        self.card, self.text = card, text
        self.before = state(card), card.ledger.calls()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        assert isinstance(error, _core.RuleViolation), repr(error)
        assert self.text in str(error)
        assert (state(self.card), self.card.ledger.calls()) == self.before
        return True


# --- addresses --------------------------------------------------------------------------------------------------------


def test_ranges_are_aligned_and_apart(card: _core.ModelDevice) -> None:
    ranges = sorted((card.reserve(size), size) for size in (PAGE, 5 * PAGE, 1 << 40, PAGE))
    assert all(address % PAGE == 0 and address > 0 for address, _ in ranges)
    for (address, size), (following, _) in pairwise(ranges):
        assert address + size < following


@pytest.mark.parametrize("size", [0, 1, PAGE - 512, PAGE + 4096])
def test_ranges_and_handles_are_multiples_of_the_granularity(card: _core.ModelDevice, size: int) -> None:
    with Breaks(card, "multiple of the granularity"):
        card.reserve(size)
    with Breaks(card, "multiple of the granularity"):
        card.create(size)


def test_another_granularity(card: _core.ModelDevice) -> None:
    small = device(granularity=4096)
    assert small.granularity == 4096
    small.map(small.reserve(4096), 4096, small.create(4096))
    with pytest.raises(ValueError, match="power of two"):
        device(granularity=3 * MIB)


def test_a_range_is_freed_whole(card: _core.ModelDevice) -> None:
    start = card.reserve(4 * PAGE)
    for address, size in ((start + PAGE, 3 * PAGE), (start, 3 * PAGE), (start, 5 * PAGE), (start + 512, PAGE)):
        with Breaks(card, "not exactly a reserved range"):
            card.free_address(address, size)
    card.free_address(start, 4 * PAGE)
    with Breaks(card, "not exactly a reserved range"):
        card.free_address(start, 4 * PAGE)


def test_a_range_is_freed_unmapped(card: _core.ModelDevice) -> None:
    start = card.reserve(4 * PAGE)
    card.map(start + 3 * PAGE, PAGE, card.create(PAGE))
    with Breaks(card, "still mapped"):
        card.free_address(start, 4 * PAGE)
    card.unmap(start + 3 * PAGE, PAGE)
    card.free_address(start, 4 * PAGE)


def test_addresses_run_out_and_come_back() -> None:
    card = device(address_space=8 * PAGE)
    start = card.reserve(6 * PAGE)
    before = state(card)
    with pytest.raises(_core.DriverFailure, match="out of addresses"):
        card.reserve(3 * PAGE)
    assert state(card) == before
    card.free_address(start, 6 * PAGE)
    card.reserve(8 * PAGE)


# --- handles and mappings ---------------------------------------------------------------------------------------------


def test_map_gives_no_access_and_set_access_does(card: _core.ModelDevice) -> None:
    start, handle = card.reserve(PAGE), card.create(PAGE)
    card.map(start, PAGE, handle)
    assert card.mapping(start) == (PAGE, handle, False)
    card.set_access(start, PAGE)
    assert card.mapping(start) == (PAGE, handle, True)


def test_a_mapping_is_one_whole_handle(card: _core.ModelDevice) -> None:
    start, handle = card.reserve(4 * PAGE), card.create(2 * PAGE)
    for size in (PAGE, 3 * PAGE):
        with Breaks(card, "one whole handle"):
            card.map(start, size, handle)
    card.map(start, 2 * PAGE, handle)


def test_a_mapping_is_aligned_and_inside_one_reservation(card: _core.ModelDevice) -> None:
    start, handle = card.reserve(2 * PAGE), card.create(2 * PAGE)
    with Breaks(card, "multiple of the granularity"):
        card.map(start + 4096, 2 * PAGE, handle)
    for address in (start + PAGE, start - PAGE, 0, start + 100 * PAGE):
        with Breaks(card, "not inside one reserved range"):
            card.map(address, 2 * PAGE, handle)


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_a_mapped_range_is_not_mapped_again(card: _core.ModelDevice, offset: int) -> None:
    start = card.reserve(8 * PAGE)
    card.map(start + 3 * PAGE, 2 * PAGE, card.create(2 * PAGE))
    handle = card.create(2 * PAGE)
    with Breaks(card, "mapped already"):
        card.map(start + (3 + offset) * PAGE, 2 * PAGE, handle)
    card.map(start + 5 * PAGE, 2 * PAGE, handle)
    card.map(start + PAGE, 2 * PAGE, card.create(2 * PAGE))


def test_unknown_and_released_handles_are_not_mapped(card: _core.ModelDevice) -> None:
    start, handle = card.reserve(2 * PAGE), card.create(PAGE)
    card.map(start, PAGE, handle)
    card.release(handle)  # it lives on in its mapping
    for each in (handle, 99, 0):
        with Breaks(card, "no such handle, or released"):
            card.map(start + PAGE, PAGE, each)


def test_one_handle_may_be_mapped_many_times(card: _core.ModelDevice) -> None:
    handle = card.create(PAGE)
    for _ in range(5):
        card.map(card.reserve(PAGE), PAGE, handle)
    assert (card.mappings, card.ledger.reserved) == (5, PAGE)


def test_memory_returns_with_its_last_mapping(card: _core.ModelDevice) -> None:
    handle = card.create(PAGE)
    first, second = card.reserve(PAGE), card.reserve(PAGE)
    card.map(first, PAGE, handle)
    card.map(second, PAGE, handle)
    card.release(handle)
    assert card.ledger.reserved == PAGE
    card.unmap(first, PAGE)
    assert card.ledger.reserved == PAGE
    card.unmap(second, PAGE)
    assert (card.ledger.reserved, card.handles, card.free_bytes) == (0, 0, CAPACITY)


def test_memory_of_an_unmapped_handle_returns_with_its_release(card: _core.ModelDevice) -> None:
    start, (handle,) = mapped_range(card)
    card.unmap(start, PAGE)
    assert card.ledger.reserved == PAGE
    card.release(handle)
    assert card.ledger.reserved == 0


def test_a_handle_is_released_once(card: _core.ModelDevice) -> None:
    _, (handle,) = mapped_range(card)
    card.release(handle)
    for each in (handle, 77):
        with Breaks(card, "no such handle, or released before"):
            card.release(each)


@pytest.mark.parametrize("call", ["unmap", "set_access"])
def test_calls_on_ranges_take_complete_mappings(card: _core.ModelDevice, call: str) -> None:
    size = 2 * PAGE
    start, _ = mapped_range(card, pages=3, handle_size=size)
    hole, _ = mapped_range(card, pages=3)
    card.unmap(hole + PAGE, PAGE)
    act = getattr(card, call)
    for address, length, text in (
        (start + PAGE, size, "begins inside a mapping"),
        (start, size + PAGE, "ends inside a mapping"),
        (start, PAGE, "ends inside a mapping"),
        (start, 4 * size, "not mapped"),
        (hole, 3 * PAGE, "not mapped"),
        (start, 0, "empty range"),
    ):
        with Breaks(card, text):
            act(address, length)
    act(start + size, 2 * size)
    act(start, size) if call == "unmap" else act(start, 3 * size)


def test_unmapping_takes_the_access_away(card: _core.ModelDevice) -> None:
    start, (handle,) = mapped_range(card)
    card.unmap(start, PAGE)
    assert card.mapping(start) is None
    card.map(start, PAGE, handle)
    assert card.mapping(start) == (PAGE, handle, False)


# --- plain allocations ------------------------------------------------------------------------------------------------


def test_plain_allocations(card: _core.ModelDevice) -> None:
    first, second = card.malloc(3), card.malloc(5 * MIB)
    assert first % PAGE == second % PAGE == 0
    assert (card.ledger.reserved, card.plain_allocations) == (3 + 5 * MIB, 2)
    card.mfree(first)
    with Breaks(card, "not an allocation"):
        card.mfree(first)
    with Breaks(card, "not an allocation"):
        card.mfree(second + 512)
    with Breaks(card, "size=0"):
        card.malloc(0)
    card.mfree(second)
    assert state(card) == state(device())


def test_scripted_addresses_come_first(card: _core.ModelDevice) -> None:
    card.script_addresses([0x70000000, 0x50000000])
    assert [card.malloc(MIB), card.malloc(MIB)] == [0x70000000, 0x50000000]
    assert card.malloc(MIB) not in (0x70000000, 0x50000000)


# --- capacity ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["create", "malloc"])
def test_the_card_has_an_end(card: _core.ModelDevice, call: str) -> None:
    act: Callable[[int], int] = getattr(card, call)
    for _ in range(63):
        act(PAGE)
    assert (card.free_bytes, card.total_bytes) == (PAGE, CAPACITY)
    before = state(card)
    for size in (2 * PAGE, 1 << 50, 2**64 - PAGE):
        with pytest.raises(_core.DriverFailure, match="out of memory"):
            act(size)
    assert state(card) == before
    act(PAGE)
    assert card.free_bytes == 0


def test_another_owner_shares_the_card(card: _core.ModelDevice) -> None:
    assert card.external_take(60 * PAGE)
    assert card.free_bytes == 4 * PAGE
    assert card.ledger.reserved == 0  # not ours
    card.create(4 * PAGE)
    with pytest.raises(_core.DriverFailure, match="out of memory"):
        card.create(PAGE)
    assert not card.external_take(1)
    card.external_give(2 * PAGE)
    card.create(PAGE)
    assert (card.free_bytes, card.ledger.reserved, card.ledger.peak_reserved) == (PAGE, 5 * PAGE, 5 * PAGE)


def test_the_peak_stays(card: _core.ModelDevice) -> None:
    handle = card.create(8 * PAGE)
    card.release(handle)
    card.create(2 * PAGE)
    assert (card.ledger.reserved, card.ledger.peak_reserved) == (2 * PAGE, 8 * PAGE)


# --- time -------------------------------------------------------------------------------------------------------------


def rows_until_complete(card: _core.ModelDevice, event: int, limit: int = 200) -> int:
    """How many rows pass, with no work on the event's stream, until the event is complete."""
    for rows in range(limit):
        if card.event_query(event):
            return rows
        card.advance(99)
    return limit


@pytest.mark.parametrize("lag", [0, 1, 7])
def test_an_event_lags_behind_the_work_of_its_stream(lag: int) -> None:
    card = device(lag=lag)
    card.advance(1)
    assert rows_until_complete(card, card.event_record(1)) == lag


def test_time_that_passed_since_the_work_counts() -> None:
    card = device(lag=7)
    card.advance(1)
    for _ in range(5):
        card.advance(2)
    assert rows_until_complete(card, card.event_record(1)) == 2
    card.work(1)  # new work in the present row
    assert rows_until_complete(card, card.event_record(1)) == 7


def test_a_stream_that_was_never_heard_of_is_taken_to_be_busy() -> None:
    card = device(lag=7)
    assert rows_until_complete(card, card.event_record(5)) == 7


def test_seeds_draw_lags_up_to_twice_as_long() -> None:
    def lags(seed: int) -> list[int]:
        card = device(lag=10, seed=seed)
        drawn = []
        for stream in range(100):
            card.advance(stream)
            drawn.append(rows_until_complete(card, card.event_record(stream)))
        return drawn

    drawn = lags(1)
    assert drawn == lags(1)
    assert drawn != lags(2)
    assert min(drawn) >= 0
    assert max(drawn) <= 20
    assert len(set(drawn)) > 10


def test_events_of_a_stream_complete_in_order_whatever_the_seed() -> None:
    for seed in range(1, 20):
        card = device(lag=10, seed=seed)
        events = []
        for _ in range(30):
            card.advance(1)
            events.append(card.event_record(1))
            done = [card.event_query(event) for event in events]
            assert done == sorted(done, reverse=True)


def test_never_means_only_for_a_host_that_waits() -> None:
    card = device(lag=-1)
    early, late = card.event_record(1), card.event_record(1)
    other = card.event_record(2)
    assert rows_until_complete(card, late) == 200
    card.event_synchronize(late)
    assert card.event_query(late)
    assert card.event_query(early)  # of the same stream, before it
    assert not card.event_query(other)
    card.synchronize()
    assert card.event_query(other)
    assert not card.event_query(card.event_record(2))


def test_a_lag_below_never_is_refused() -> None:
    with pytest.raises(ValueError, match="lag"):
        device(lag=-2)


def test_a_planned_stream_completes_at_its_row_whatever_the_lag() -> None:
    for lag in (0, 3, -1):
        card = device(lag=lag)
        card.plan(-5, 12)
        event = card.event_record(-5)
        assert rows_until_complete(card, event) == 12
        assert card.now == 12
        card.plan(-5, 20)
        assert rows_until_complete(card, card.event_record(-5)) == 8


def test_all_work_done_at_once() -> None:
    card = device(lag=7, seed=3)
    card.advance(1)
    card.advance(2)
    events = [card.event_record(1), card.event_record(2)]
    card.finish_all()
    assert all(card.event_query(event) for event in events)
    assert card.event_query(card.event_record(1))  # no work came since
    fixed = device(lag=7)
    fixed.advance(1)
    fixed.finish_all()
    fixed.work(1)
    assert rows_until_complete(fixed, fixed.event_record(1)) == 7


def test_a_host_that_waited_saw_what_was_due_earlier() -> None:
    card = device(lag=5)
    card.advance(1)
    first = card.event_record(1)
    card.advance(2)
    second = card.event_record(2)
    card.event_synchronize(second)
    assert card.event_query(first)
    assert card.ledger.stalled_rows == 5


def test_a_stream_that_waits_is_late_by_what_it_waits_for() -> None:
    card = device(lag=10)
    card.advance(1)
    card.stream_wait(2, card.event_record(1))
    assert card.ledger.stalled_rows == 10
    quick = device(lag=10)
    quick.plan(1, 50)
    quick.advance(2)
    quick.stream_wait(2, quick.event_record(1))
    assert rows_until_complete(quick, quick.event_record(2)) == 49
    quick.stream_wait(3, quick.event_record(1))  # complete by now: nothing to wait for
    assert quick.ledger.stalled_rows == 49


def test_events_end_with_their_destruction(card: _core.ModelDevice) -> None:
    event = card.event_record(0)
    card.event_destroy(event)
    for act in (
        lambda: card.event_query(event),
        lambda: card.event_synchronize(event),
        lambda: card.event_destroy(event),
        lambda: card.stream_wait(1, event),
        lambda: card.event_query(12345),
    ):
        with Breaks(card, "no such event, or destroyed"):
            act()


# --- capture ----------------------------------------------------------------------------------------------------------


def test_while_a_stream_captures(card: _core.ModelDevice) -> None:
    start, _ = mapped_range(card)
    plain, event = card.malloc(MIB), card.event_record(0)
    card.begin_capture(3)
    card.begin_capture(4)
    card.end_capture(4)
    forbidden: list[Callable[[], object]] = [
        lambda: card.unmap(start, PAGE),
        lambda: card.mfree(plain),
        lambda: card.event_query(event),
        lambda: card.event_synchronize(event),
        card.synchronize,
    ]
    for act in forbidden:
        with Breaks(card, "while a stream captures"):
            act()
    with Breaks(card, "on a capturing stream"):
        card.event_record(3)
    mapped_range(card)  # reserve, create, map and set-access are allowed,
    card.malloc(MIB)  # and so are these
    card.stream_wait(0, card.event_record(4))
    card.end_capture(3)
    for act in forbidden:
        act()
    card.event_record(3)


# --- costs ------------------------------------------------------------------------------------------------------------


def work_of_every_kind(card: _core.ModelDevice) -> None:
    start, handles = mapped_range(card, pages=5)  # 1 reserve, 5 create, 5 map, 1 set-access of 5
    card.event_record(0)
    card.stream_wait(1, card.event_record(0))
    card.mfree(card.malloc(MIB))
    card.synchronize()
    card.unmap(start, 2 * PAGE)  # 2 handles
    card.unmap(start + 2 * PAGE, 3 * PAGE)  # 3 handles
    for handle in handles:
        card.release(handle)
    card.free_address(start, 5 * PAGE)


def test_costs_by_hand() -> None:
    common = 2 + 5 * 29 + 5 * 2 + 2 * 1 + 1 + 700 + 1000 + 5 * 23 + 2
    per_call, per_page = device(costs="per-call"), device(costs="per-page")
    work_of_every_kind(per_call)
    work_of_every_kind(per_page)
    assert per_call.ledger.seconds == pytest.approx((common + 38 + 2 * 34) * 1e-6)
    assert per_page.ledger.seconds == pytest.approx((common + 5 * 38 + 5 * 34) * 1e-6)
    for card in (per_call, per_page):
        assert card.ledger.calls() == {
            "reserve": 1,
            "create": 5,
            "map": 5,
            "set_access": 1,
            "unmap": 2,
            "release": 5,
            "free": 1,
            "malloc": 1,
            "mfree": 1,
            "event_record": 2,
            "stream_wait": 1,
            "synchronize": 1,
            "event_query": 0,
            "event_synchronize": 0,
        }


def test_a_handle_costs_the_same_whatever_its_size() -> None:
    small, large = device(costs="per-page"), device(costs="per-page")
    mapped_range(small, pages=1, handle_size=PAGE)
    mapped_range(large, pages=1, handle_size=16 * PAGE)
    assert small.ledger.seconds == large.ledger.seconds


def test_unknown_cost_tables_are_refused() -> None:
    with pytest.raises(ValueError, match="per-call, per-page"):
        device(costs="free")


# --- faults -----------------------------------------------------------------------------------------------------------

Act = Callable[[], object]
FAULTY: dict[str, Callable[[_core.ModelDevice], Act]] = {
    "create": lambda card: partial(card.create, PAGE),
    "release": lambda card: partial(card.release, card.create(PAGE)),
    "map": lambda card: partial(card.map, card.reserve(PAGE), PAGE, card.create(PAGE)),
    "unmap": lambda card: partial(card.unmap, mapped_range(card)[0], PAGE),
    "set_access": lambda card: partial(card.set_access, mapped_range(card)[0], PAGE),
    "reserve": lambda card: partial(card.reserve, PAGE),
    "free": lambda card: partial(card.free_address, card.reserve(PAGE), PAGE),
    "malloc": lambda card: partial(card.malloc, MIB),
    "mfree": lambda card: partial(card.mfree, card.malloc(MIB)),
    "synchronize": lambda card: card.synchronize,
    "event_record": lambda card: partial(card.event_record, 0),
    "stream_wait": lambda card: partial(card.stream_wait, 1, card.event_record(0)),
    "event_query": lambda card: partial(card.event_query, card.event_record(0)),
    "event_synchronize": lambda card: partial(card.event_synchronize, card.event_record(0)),
}


def test_every_call_can_fail() -> None:
    assert set(FAULTY) == set(device().ledger.calls())


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("call", FAULTY)
def test_a_fault_changes_nothing_but_the_count(call: str, memory: bool) -> None:
    card = device()
    act = FAULTY[call](card)
    before, count = state(card), card.ledger.count(call)
    card.inject(call, 1, memory)
    with pytest.raises(_core.DriverFailure, match="out of memory" if memory else "failed"):
        act()
    assert state(card) == before
    assert card.ledger.count(call) == count + 1
    act()


@pytest.mark.parametrize("call", ["event_synchronize", "synchronize"])
def test_a_wait_that_fails_completes_nothing(call: str) -> None:
    card = device(lag=-1)
    event = card.event_record(0)
    card.inject(call)
    with pytest.raises(_core.DriverFailure):
        card.synchronize() if call == "synchronize" else card.event_synchronize(event)
    assert not card.event_query(event)
    assert card.ledger.stalled_rows == 0


def test_a_map_without_access_stays_without_when_set_access_fails(card: _core.ModelDevice) -> None:
    start, handle = card.reserve(PAGE), card.create(PAGE)
    card.map(start, PAGE, handle)
    card.inject("set_access")
    with pytest.raises(_core.DriverFailure):
        card.set_access(start, PAGE)
    assert card.mapping(start) == (PAGE, handle, False)


def test_faults_are_counted_from_now(card: _core.ModelDevice) -> None:
    card.create(PAGE)
    card.inject("create", 2)
    card.inject("create", 4, memory=True)
    outcomes = []
    for _ in range(5):
        try:
            card.create(PAGE)
            outcomes.append("ok")
        except _core.DriverFailure as failure:
            outcomes.append(str(failure))
    assert outcomes == ["ok", "failed", "ok", "out of memory", "ok"]
    with pytest.raises(ValueError, match="counted from 1"):
        card.inject("create", 0)
    with pytest.raises(ValueError, match="unknown driver call"):
        card.inject("cuMemCreate")


def test_a_broken_rule_is_told_before_a_fault(card: _core.ModelDevice) -> None:
    card.inject("create")
    with Breaks(card, "multiple of the granularity"):
        card.create(1)
    with pytest.raises(_core.DriverFailure):
        card.create(PAGE)


# --- the end ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", FAULTY)
def test_a_driver_that_shuts_down_does_nothing_more(call: str) -> None:
    card = device()
    act = FAULTY[call](card)
    before, calls = state(card), card.ledger.calls()
    card.shut_down()
    for _ in range(2):
        with pytest.raises(_core.DriverFailure, match="shutting down"):
            act()
    assert (state(card), card.ledger.calls()) == (before, calls)


@settings(deadline=None, max_examples=60)
@given(steps=st.lists(st.one_of(st.integers(1, 40), st.integers(-8, -1)), max_size=60))
def test_addresses_go_downwards_as_on_cards_and_come_again(steps: list[int]) -> None:
    """A positive step reserves so many pages, a negative one gives an older range back."""
    card = device(downwards=True)
    held: dict[int, int] = {}
    lowest = None
    given_back = False
    for step in steps:
        if step < 0:
            if held:
                address = list(held)[step % len(held)]
                card.free_address(address, held.pop(address))
                given_back = True
            continue
        address = card.reserve(step * PAGE)
        assert all(address + step * PAGE <= begin or begin + size <= address for begin, size in held.items())
        if lowest is not None and not given_back:
            assert address + step * PAGE < lowest
        lowest = address if lowest is None else min(lowest, address)
        held[address] = step * PAGE
    for address, size in held.items():
        card.free_address(address, size)
    # All of it is one range again: the first that is asked for lies where the first one lay.
    first = device(downwards=True).reserve(PAGE)
    assert card.reserve(PAGE) == first
