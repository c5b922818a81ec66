"""The independent validator: for each invariant something that breaks it is caught by its number, and its correct twin
passes. Whole allocators with one planted flaw come from movie._core.testing; finer cases are played by hand, the test
standing in the allocator's place: it makes the driver calls and says which address malloc() returns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from movie import _core

MIB = 1 << 20
PAGE = 2 * MIB


def model(lag: int = 1, capacity: int = 1 << 40) -> _core.ModelDevice:
    options = _core.ModelOptions()
    options.lag, options.capacity = lag, capacity
    return _core.ModelDevice(options)


class Caught:
    """Expects the validator to name this invariant."""

    def __init__(self, invariant: int) -> None:
        self.invariant = invariant

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        assert isinstance(error, _core.ValidationError), f"expected invariant {self.invariant}, got {error!r}"
        assert error.invariant == self.invariant, str(error)
        assert str(error).startswith(f"invariant {self.invariant}: ")
        return True


# --- whole allocators with one flaw -----------------------------------------------------------------------------------


class Reference:
    def __init__(self, flaw: str, lag: int = 1, capacity: int = 1 << 40) -> None:
        self.device = model(lag, capacity)
        self.watch = _core.Watch(self.device, every=1)
        self.allocator, self.controls = _core.testing.watch_reference(self.watch, flaw)


def two_blocks(flaw: str) -> None:
    run = Reference(flaw)
    first, second = run.allocator.malloc(5 * MIB), run.allocator.malloc(5 * MIB)
    run.allocator.free(first)
    run.allocator.free(second)


def flush_beside_live_block(flaw: str) -> None:
    run = Reference(flaw)
    run.allocator.malloc(5 * MIB)
    run.allocator.empty_cache()


def flush_idle_block(flaw: str) -> None:
    run = Reference(flaw, lag=-1)
    run.allocator.free(run.allocator.malloc(5 * MIB))
    run.allocator.empty_cache()
    assert run.device.ledger.reserved == 0


def free_of_a_stray_address(flaw: str) -> None:
    run = Reference(flaw)
    run.allocator.malloc(5 * MIB)
    with pytest.raises(ValueError, match="not a live block"):
        run.allocator.free(12345)


def request_beyond_the_card(flaw: str) -> None:
    run = Reference(flaw, capacity=4 * MIB)
    with pytest.raises(_core.OutOfMemory):
        run.allocator.malloc(5 * MIB)


def pool_after_pool(flaw: str) -> None:
    run = Reference(flaw)
    run.allocator.free(run.allocator.malloc(5 * MIB, pool=1))
    run.allocator.malloc(5 * MIB, pool=2)


def flush_while_capturing(flaw: str) -> None:
    run = Reference(flaw)
    run.allocator.free(run.allocator.malloc(5 * MIB))
    run.watch.begin_capture(7)
    run.controls.set_capturing(True)
    run.allocator.empty_cache()
    assert run.device.ledger.reserved > 0
    run.controls.set_capturing(False)
    run.watch.end_capture(7)
    run.allocator.empty_cache()
    assert run.device.ledger.reserved == 0


def flush_of_pinned_memory(flaw: str) -> None:
    run = Reference(flaw)
    block = run.allocator.malloc(5 * MIB)
    run.watch.pin(block)
    run.controls.pin(block)
    run.allocator.free(block)
    run.allocator.empty_cache()
    assert run.device.ledger.reserved == 6 * MIB


def stream_after_stream(flaw: str) -> None:
    run = Reference(flaw)
    run.allocator.free(run.allocator.malloc(5 * MIB, stream=1))
    run.allocator.malloc(5 * MIB, stream=2)
    assert run.device.ledger.reserved == 6 * MIB


def reuse_of_a_recorded_block(flaw: str) -> None:
    run = Reference(flaw)
    block = run.allocator.malloc(5 * MIB, stream=1)
    run.allocator.record_stream(block, 2)
    run.allocator.free(block)
    run.allocator.malloc(5 * MIB, stream=1)
    assert run.device.ledger.reserved == 6 * MIB


SCENARIOS: dict[str, Callable[[str], None]] = {
    "shares-blocks": two_blocks,
    "aliases-pages": two_blocks,
    "maps-too-little": two_blocks,
    "unmaps-live-blocks": flush_beside_live_block,
    "does-not-wait": flush_idle_block,
    "leaves-mappings": flush_idle_block,
    "miscounts": two_blocks,
    "takes-stray-frees": free_of_a_stray_address,
    "leaks-on-failure": request_beyond_the_card,
    "ignores-pools": pool_after_pool,
    "waits-while-capturing": flush_while_capturing,
    "releases-pinned": flush_of_pinned_memory,
    "forgets-access": two_blocks,
    "ignores-streams": stream_after_stream,
    "forgets-recorded-streams": reuse_of_a_recorded_block,
    "records-too-early": reuse_of_a_recorded_block,
}


def test_every_invariant_that_can_be_seen_has_a_broken_allocator() -> None:
    flaws = _core.testing.flaws()
    assert {name for name, _, _ in flaws} == set(SCENARIOS)
    assert {invariant for _, invariant, _ in flaws} == {1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12}


@pytest.mark.parametrize(("flaw", "invariant"), [flaw[:2] for flaw in _core.testing.flaws()])
def test_a_broken_allocator_is_caught(flaw: str, invariant: int) -> None:
    with Caught(invariant):
        SCENARIOS[flaw](flaw)


@pytest.mark.parametrize("scenario", set(SCENARIOS.values()), ids=lambda scenario: scenario.__name__)
def test_the_correct_allocator_passes(scenario: Callable[[str], None]) -> None:
    scenario("")


# --- by hand ----------------------------------------------------------------------------------------------------------


class ByHand:
    """A device under watch, and an allocator that returns what it is told."""

    def __init__(self, lag: int = -1) -> None:
        self.device = model(lag)
        self.watch = _core.Watch(self.device, every=0)
        self.driver = self.watch.driver
        self.allocator, self.script = _core.testing.watch_script(self.watch)

    def page(self) -> int:
        return self.driver.create(PAGE)

    def view(self, *handles: int, access: bool = True) -> int:
        """A range that maps these pages side by side."""
        address = self.driver.reserve(len(handles) * PAGE)
        for i, handle in enumerate(handles):
            self.driver.map(address + i * PAGE, PAGE, handle)
        if access:
            self.driver.set_access(address, len(handles) * PAGE)
        return address

    def malloc(self, address: int, size: int, stream: int = 0, pool: int = 0) -> int:
        self.script.answer(address)
        return self.allocator.malloc(size, stream, pool)

    def free(self, address: int) -> None:
        self.allocator.free(address)


@pytest.fixture
def hand() -> ByHand:
    return ByHand()


def test_1_two_ranges_of_one_page_serve_one_block_at_a_time(hand: ByHand) -> None:
    page = hand.page()
    first, second = hand.view(page), hand.view(page)
    hand.malloc(first, PAGE)
    hand.free(first)
    hand.malloc(second, PAGE)
    with Caught(1):
        hand.malloc(first, PAGE)


def test_1_blocks_may_share_a_page_but_no_byte(hand: ByHand) -> None:
    page = hand.page()
    first, second = hand.view(page), hand.view(page)
    hand.malloc(first, MIB)
    hand.malloc(second + MIB, MIB)
    hand.free(second + MIB)
    with Caught(1):
        hand.malloc(second + MIB - 512, MIB)


def test_1_no_byte_twice_in_one_block(hand: ByHand) -> None:
    page, other = hand.page(), hand.page()
    hand.malloc(hand.view(other), PAGE)
    with Caught(1):
        hand.malloc(hand.view(page, page), 2 * PAGE)


def test_1_rounding_belongs_to_the_block(hand: ByHand) -> None:
    start = hand.view(hand.page())
    hand.malloc(start, 513)
    hand.malloc(start + 1024, 100)
    with Caught(1):
        hand.malloc(start + 512, 100)


def test_2_a_block_ends_where_its_mappings_end(hand: ByHand) -> None:
    page = hand.page()
    start = hand.driver.reserve(2 * PAGE)
    hand.driver.map(start, PAGE, page)
    hand.driver.set_access(start, PAGE)
    hand.malloc(start, PAGE)
    hand.free(start)
    with Caught(2):
        hand.malloc(start, PAGE + 1)


def test_2_a_block_begins_where_something_is_mapped(hand: ByHand) -> None:
    with Caught(2):
        hand.malloc(hand.driver.reserve(PAGE), 512)


def test_2_blocks_are_aligned(hand: ByHand) -> None:
    with Caught(2):
        hand.malloc(hand.view(hand.page()) + 256, 512)


def test_2_a_block_stays_in_its_plain_allocation(hand: ByHand) -> None:
    upper, lower = hand.driver.malloc(PAGE), hand.driver.malloc(PAGE)
    assert lower + PAGE == upper  # neighbours by chance, which no program may rely on
    hand.malloc(lower, PAGE)
    hand.free(lower)
    with Caught(2):
        hand.malloc(lower, 2 * PAGE)


def test_3_no_unmap_under_a_live_block(hand: ByHand) -> None:
    page = hand.page()
    home, view = hand.view(page), hand.view(page)
    hand.malloc(view, MIB)
    hand.driver.unmap(home, PAGE)  # the block lives in the other range
    with Caught(3):
        hand.driver.unmap(view, PAGE)


def test_3_no_unmap_before_the_host_saw_the_work_complete(hand: ByHand) -> None:
    view = hand.view(hand.page())
    hand.free(hand.malloc(view, MIB))
    hand.driver.stream_wait(1, hand.driver.event_record(0))  # orders streams, tells the host nothing
    with Caught(3):
        hand.driver.unmap(view, PAGE)


@pytest.mark.parametrize("how", ["synchronize", "event", "event of a stream that waited"])
def test_3_unmap_once_the_host_saw_the_work_complete(hand: ByHand, how: str) -> None:
    view = hand.view(hand.page())
    hand.free(hand.malloc(view, MIB))
    event = hand.driver.event_record(0)
    if how == "event of a stream that waited":
        hand.driver.stream_wait(1, event)
        event = hand.driver.event_record(1)
    if how == "synchronize":
        hand.driver.synchronize()
    else:
        hand.driver.event_synchronize(event)
    hand.driver.unmap(view, PAGE)


def test_3_an_event_from_before_the_free_says_nothing(hand: ByHand) -> None:
    view = hand.view(hand.page())
    hand.malloc(view, MIB)
    event = hand.driver.event_record(0)
    hand.free(view)
    hand.driver.event_synchronize(event)
    with Caught(3):
        hand.driver.unmap(view, PAGE)


def test_3_an_event_that_is_not_ready_says_nothing(hand: ByHand) -> None:
    view = hand.view(hand.page())
    hand.free(hand.malloc(view, MIB))
    assert not hand.driver.event_query(hand.driver.event_record(0))
    with Caught(3):
        hand.driver.unmap(view, PAGE)


def test_3_recorded_streams_count_too(hand: ByHand) -> None:
    view = hand.view(hand.page())
    hand.malloc(view, MIB)
    hand.allocator.record_stream(view, 5)
    hand.free(view)
    hand.driver.event_synchronize(hand.driver.event_record(0))
    with Caught(3):
        hand.driver.unmap(view, PAGE)


def test_3_reuse_behind_a_device_wait_does_not_open_the_old_range(hand: ByHand) -> None:
    page = hand.page()
    home, view = hand.view(page), hand.view(page)
    hand.free(hand.malloc(view, PAGE, stream=1))
    hand.driver.stream_wait(2, hand.driver.event_record(1))
    hand.malloc(home, PAGE, stream=2)  # the page serves again, lawfully
    with Caught(3):
        hand.driver.unmap(view, PAGE)


def test_4_no_release_of_a_live_blocks_page(hand: ByHand) -> None:
    page = hand.page()
    hand.malloc(hand.view(page), MIB)
    with Caught(4):
        hand.driver.release(page)


def test_4_no_release_before_the_host_saw_the_work_complete(hand: ByHand) -> None:
    page = hand.page()
    hand.free(hand.malloc(hand.view(page), MIB))
    with Caught(4):
        hand.driver.release(page)


def test_4_a_release_needs_every_mapping_gone_by_the_end_of_the_call(hand: ByHand) -> None:
    page, other = hand.page(), hand.page()
    home, view = hand.view(page), hand.view(page, other)
    hand.driver.release(page)
    hand.driver.unmap(home, PAGE)
    hand.driver.unmap(view, 2 * PAGE)
    hand.allocator.empty_cache()  # by its end nothing maps the page
    assert hand.watch.held == PAGE == hand.device.ledger.reserved


def test_4_a_release_that_leaves_a_view_is_caught(hand: ByHand) -> None:
    page = hand.page()
    home = hand.view(page)
    hand.view(page)
    hand.driver.release(page)
    hand.driver.unmap(home, PAGE)
    with Caught(4):
        hand.allocator.empty_cache()


def test_4_plain_memory_is_not_freed_under_a_live_block(hand: ByHand) -> None:
    segment = hand.driver.malloc(20 * MIB)
    hand.malloc(segment + MIB, MIB)
    with Caught(4):
        hand.driver.mfree(segment)


def test_freeing_plain_memory_waits_for_the_device(hand: ByHand) -> None:
    segment = hand.driver.malloc(20 * MIB)
    view = hand.view(hand.page())
    hand.free(hand.malloc(segment, MIB, stream=1))
    hand.free(hand.malloc(view, MIB, stream=2))
    hand.driver.mfree(segment)
    hand.driver.unmap(view, PAGE)  # the wait was for all streams


def test_5_memory_taken_behind_the_validators_back(hand: ByHand) -> None:
    hand.allocator.empty_cache()
    hand.device.create(PAGE)
    with Caught(5):
        hand.allocator.empty_cache()


def test_5_statistics_are_compared(hand: ByHand) -> None:
    hand.malloc(hand.view(hand.page()), MIB)
    with Caught(5):  # the script keeps no statistics
        hand.watch.check_all()


def test_8_no_page_serves_two_pools_at_once(hand: ByHand) -> None:
    view = hand.view(hand.page())
    hand.malloc(view, MIB, pool=1)
    hand.malloc(view + MIB, MIB // 2, pool=1)
    hand.allocator.set_pool_lendable(1, True)
    with Caught(8):
        hand.malloc(view + MIB + MIB // 2, MIB // 2, pool=0)


@pytest.mark.parametrize(
    ("owner", "permission", "lawful"),
    [(1, "", False), (1, "release", True), (1, "lend", True), (1, "lend, then not", False), (0, "", True)],
)
def test_8_pages_leave_only_pools_that_give_them(hand: ByHand, owner: int, permission: str, lawful: bool) -> None:
    view = hand.view(hand.page())
    hand.free(hand.malloc(view, MIB, pool=owner))
    if permission == "release":
        hand.allocator.release_pool(owner)
    if "lend" in permission:
        hand.allocator.set_pool_lendable(owner, True)
    if "not" in permission:
        hand.allocator.set_pool_lendable(owner, False)
    if lawful:
        hand.malloc(view, PAGE, pool=2)
        return
    with Caught(8):
        hand.malloc(view, PAGE, pool=2)


def test_8_blocks_that_outlive_their_pool_are_like_any_other(hand: ByHand) -> None:
    view = hand.view(hand.page())
    hand.malloc(view, MIB, pool=1)
    hand.allocator.release_pool(1)
    hand.malloc(view + MIB, MIB // 2, pool=2)  # what is free in the pool may serve others, now
    with Caught(8):
        hand.malloc(view + MIB + MIB // 2, MIB // 2, pool=0)  # but by now the page is the other pool's


def test_8_a_lent_page_carries_no_open_work_of_its_pool(hand: ByHand) -> None:
    view = hand.view(hand.page())
    hand.free(hand.malloc(view, MIB, stream=1, pool=1))
    hand.allocator.set_pool_lendable(1, True)
    with Caught(8):  # the other half of the page, which stream 1 never used
        hand.malloc(view + MIB, MIB, stream=2, pool=0)


def forbidden_while_capturing() -> dict[str, Callable[[ByHand, int, int, int], object]]:
    return {
        "unmap": lambda hand, view, plain, event: hand.driver.unmap(view, PAGE),
        "mfree": lambda hand, view, plain, event: hand.driver.mfree(plain),
        "event_query": lambda hand, view, plain, event: hand.driver.event_query(event),
        "event_synchronize": lambda hand, view, plain, event: hand.driver.event_synchronize(event),
        "synchronize": lambda hand, view, plain, event: hand.driver.synchronize(),
        "event_record": lambda hand, view, plain, event: hand.driver.event_record(3),
    }


@pytest.mark.parametrize("call", forbidden_while_capturing())
def test_9_while_a_stream_captures(hand: ByHand, call: str) -> None:
    view, plain, event = hand.view(hand.page()), hand.driver.malloc(PAGE), hand.driver.event_record(0)
    hand.watch.begin_capture(3)
    hand.view(hand.page())  # create, map and set-access are allowed,
    hand.driver.event_record(4)  # and events of streams that do not capture
    with Caught(9):
        forbidden_while_capturing()[call](hand, view, plain, event)


@pytest.mark.parametrize("call", forbidden_while_capturing())
def test_9_ends_with_the_capture(hand: ByHand, call: str) -> None:
    view, plain, event = hand.view(hand.page()), hand.driver.malloc(PAGE), hand.driver.event_record(0)
    hand.watch.begin_capture(3)
    hand.watch.end_capture(3)
    forbidden_while_capturing()[call](hand, view, plain, event)


def test_10_pinned_memory_keeps_its_mappings(hand: ByHand) -> None:
    page = hand.page()
    view = hand.view(page)
    hand.malloc(view, MIB)
    hand.watch.pin(view)
    hand.free(view)
    hand.driver.synchronize()
    with Caught(10):
        hand.driver.unmap(view, PAGE)


def test_10_pinned_memory_keeps_its_handle(hand: ByHand) -> None:
    page = hand.page()
    view = hand.view(page)
    hand.malloc(view, MIB)
    hand.watch.pin(view)
    hand.free(view)
    hand.driver.synchronize()
    with Caught(10):
        hand.driver.release(page)


def test_10_only_live_blocks_are_pinned(hand: ByHand) -> None:
    with pytest.raises(ValueError, match="no live block"):
        hand.watch.pin(hand.view(hand.page()))


def test_11_a_mapping_is_a_whole_handle(hand: ByHand) -> None:
    handle = hand.driver.create(2 * PAGE)
    start = hand.driver.reserve(2 * PAGE)
    hand.driver.map(start, 2 * PAGE, handle)
    other = hand.driver.reserve(2 * PAGE)
    with Caught(11):
        hand.driver.map(other, PAGE, handle)


def test_11_access_comes_before_use(hand: ByHand) -> None:
    with Caught(11):
        hand.malloc(hand.view(hand.page(), access=False), MIB)


def test_11_access_ends_with_the_mapping(hand: ByHand) -> None:
    page = hand.page()
    view = hand.view(page)
    hand.driver.unmap(view, PAGE)
    hand.driver.map(view, PAGE, page)
    with Caught(11):
        hand.malloc(view, MIB)


def test_12_a_stream_follows_itself(hand: ByHand) -> None:
    view = hand.view(hand.page())
    for _ in range(3):
        hand.free(hand.malloc(view, PAGE, stream=4))


def test_12_another_stream_needs_an_order(hand: ByHand) -> None:
    view = hand.view(hand.page())
    hand.free(hand.malloc(view, PAGE, stream=1))
    with Caught(12):
        hand.malloc(view, PAGE, stream=2)


def test_12_a_wait_orders(hand: ByHand) -> None:
    view = hand.view(hand.page())
    hand.free(hand.malloc(view, PAGE, stream=1))
    hand.driver.stream_wait(2, hand.driver.event_record(1))
    hand.malloc(view, PAGE, stream=2)


def test_12_a_wait_orders_one_stream_only(hand: ByHand) -> None:
    view = hand.view(hand.page())
    hand.free(hand.malloc(view, PAGE, stream=1))
    hand.driver.stream_wait(2, hand.driver.event_record(1))
    with Caught(12):
        hand.malloc(view, PAGE, stream=3)


def test_12_waits_are_transitive(hand: ByHand) -> None:
    view = hand.view(hand.page())
    hand.free(hand.malloc(view, PAGE, stream=1))
    hand.driver.stream_wait(2, hand.driver.event_record(1))
    hand.driver.stream_wait(3, hand.driver.event_record(2))
    hand.malloc(view, PAGE, stream=3)


def test_12_waits_are_transitive_only_in_order(hand: ByHand) -> None:
    view = hand.view(hand.page())
    hand.free(hand.malloc(view, PAGE, stream=1))
    hand.driver.stream_wait(3, hand.driver.event_record(2))
    hand.driver.stream_wait(2, hand.driver.event_record(1))  # too late for stream 3
    with Caught(12):
        hand.malloc(view, PAGE, stream=3)


def test_12_an_event_from_before_the_free_orders_nothing(hand: ByHand) -> None:
    view = hand.view(hand.page())
    hand.malloc(view, PAGE, stream=1)
    event = hand.driver.event_record(1)
    hand.free(view)
    hand.driver.stream_wait(2, event)
    with Caught(12):
        hand.malloc(view, PAGE, stream=2)


def test_12_what_the_host_saw_complete_is_free_for_all() -> None:
    hand = ByHand(lag=2)
    view = hand.view(hand.page())
    hand.free(hand.malloc(view, PAGE, stream=1))
    event = hand.driver.event_record(1)
    hand.device.advance(1)
    assert not hand.driver.event_query(event)
    hand.device.advance(1)
    assert hand.driver.event_query(event)
    hand.malloc(view, PAGE, stream=2)


def test_12_the_host_must_look() -> None:
    hand = ByHand(lag=0)
    view = hand.view(hand.page())
    hand.free(hand.malloc(view, PAGE, stream=1))
    hand.driver.event_record(1)  # complete at once, but nobody asked
    with Caught(12):
        hand.malloc(view, PAGE, stream=2)


def test_12_recorded_streams_must_be_ordered_too(hand: ByHand) -> None:
    view = hand.view(hand.page())
    hand.malloc(view, PAGE, stream=1)
    hand.allocator.record_stream(view, 2)
    hand.free(view)
    with Caught(12):
        hand.malloc(view, PAGE, stream=1)


def test_12_all_work_up_to_the_free_counts(hand: ByHand) -> None:
    view = hand.view(hand.page())
    hand.malloc(view, PAGE, stream=1)
    hand.allocator.record_stream(view, 2)
    event = hand.driver.event_record(2)  # stream 2 may get more work before the free
    hand.free(view)
    hand.driver.stream_wait(1, event)
    with Caught(12):
        hand.malloc(view, PAGE, stream=1)


def test_12_recorded_streams_of_unknown_addresses_are_ignored(hand: ByHand) -> None:
    hand.allocator.record_stream(0xDEAD000, 2)


def test_12_only_the_bytes_that_are_reused_matter(hand: ByHand) -> None:
    view = hand.view(hand.page())
    hand.free(hand.malloc(view, MIB, stream=1))
    hand.malloc(view + MIB, MIB, stream=2)
    with Caught(12):
        hand.malloc(view + MIB - 512, 512, stream=2)


def test_12_a_block_over_pieces_of_several_streams(hand: ByHand) -> None:
    view = hand.view(hand.page(), hand.page())
    for i in range(8):
        hand.free(hand.malloc(view + i * PAGE // 4, PAGE // 4, stream=i))
    for i in range(7):
        hand.driver.stream_wait(9, hand.driver.event_record(i))
    with Caught(12):
        hand.malloc(view, 2 * PAGE, stream=9)


# --- the watch itself -------------------------------------------------------------------------------------------------


def test_a_fault_cannot_be_swallowed(hand: ByHand) -> None:
    view = hand.view(hand.page())
    hand.malloc(view, MIB)
    with Caught(3):
        hand.driver.unmap(view, PAGE)
    for _ in range(2):
        with Caught(3):
            hand.allocator.empty_cache()


def test_books(hand: ByHand) -> None:
    view = hand.view(hand.page(), hand.page())
    hand.malloc(view, 1000)
    hand.malloc(view + PAGE, MIB)
    assert (hand.watch.held, hand.watch.live_blocks, hand.watch.live_requested) == (2 * PAGE, 2, 1000 + MIB)
    hand.free(view)
    assert (hand.watch.held, hand.watch.live_blocks, hand.watch.live_requested) == (2 * PAGE, 1, MIB)
    assert hand.watch.calls == 3


def test_a_failed_free_leaves_the_block_alive() -> None:
    device = model()
    watch = _core.Watch(device, every=1)
    allocator, _ = _core.testing.watch_reference(watch)
    block = allocator.malloc(MIB)
    device.inject("event_record")
    with pytest.raises(RuntimeError, match="records no event"):
        allocator.free(block)
    assert watch.live_blocks == 1
    allocator.free(block)
    assert watch.live_blocks == 0


def test_a_driver_that_shuts_down_ends_the_watch() -> None:
    device = model()
    watch = _core.Watch(device, every=1)
    allocator, _ = _core.testing.watch_reference(watch)
    block = allocator.malloc(MIB)
    allocator.free(allocator.malloc(MIB))
    device.shut_down()
    allocator.free(block)
    allocator.empty_cache()
    with pytest.raises(_core.OutOfMemory):
        allocator.malloc(64 * MIB)


def test_native_passes_on_several_streams() -> None:
    device = model(lag=5, capacity=200 * MIB)
    watch = _core.Watch(device, every=1)
    allocator = watch.make("native")
    for step in range(300):
        device.advance(step % 3)
        block = allocator.malloc((1 + step * 7 % 40) * MIB, stream=step % 3)
        if step % 4 == 0:
            allocator.record_stream(block, (step + 1) % 3)
        allocator.free(block)
        if step % 50 == 0:
            allocator.empty_cache()
    watch.check_all()


def two_streams_in_turn() -> _core.TraceColumns:
    """Eight blocks, each on the other stream than the one before it, none alive together."""
    ids = np.repeat(np.arange(8, dtype=np.int64), 3)
    none = np.zeros(0, np.int64)
    return _core.TraceColumns(
        action=np.tile(np.array([0, 1, 2], np.uint8), 8),  # alloc, free_requested, free_completed
        id=ids,
        bytes=np.full(24, 5 * MIB, np.int64),
        stream=ids % 2,
        pool=np.zeros(24, np.int64),
        address=np.zeros(24, np.uint64),
        start_bytes=none,
        start_stream=none,
        start_pool=none,
        start_pending=np.zeros(0, np.bool_),
        ids=8,
        completions_recorded=True,
    )


def test_a_replay_is_watched() -> None:
    trace = two_streams_in_turn()
    assert _core.testing.replay_reference(trace).peak_reserved == 6 * MIB
    with Caught(12):
        _core.testing.replay_reference(trace, flaw="ignores-streams")
    assert _core.testing.replay_reference(trace, flaw="ignores-streams", validate=False).peak_reserved == 6 * MIB


def test_a_replay_ends_with_a_comparison_of_all_sums() -> None:
    with Caught(5):
        _core.testing.replay_reference(two_streams_in_turn(), flaw="miscounts")
