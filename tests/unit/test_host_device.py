"""The host device: real pages, real aliases, real bytes; streams that do their work late; and soaks over it, of which
the spoilt ones are caught."""

import pytest

from movie import _core

MIB = 1 << 20
PAGE = 2 * MIB
PAGES = 64


def device(**options: object) -> _core.HostDevice:
    chosen = _core.HostOptions()
    chosen.capacity = PAGES * PAGE
    for name, value in options.items():
        setattr(chosen, name, value)
    return _core.HostDevice(chosen)


def open_range(card: _core.HostDevice, handles: list[int]) -> int:
    """A range over these handles of one page each, side by side."""
    start = card.reserve(len(handles) * PAGE)
    for i, handle in enumerate(handles):
        card.map(start + i * PAGE, PAGE, handle)
    card.set_access(start, len(handles) * PAGE)
    return start


# --- memory -----------------------------------------------------------------------------------------------------------


def test_two_ranges_over_one_handle_are_aliases() -> None:
    card = device()
    a, b, c = (card.create(PAGE) for _ in range(3))
    home, view = open_range(card, [a, b, c]), open_range(card, [c, a])
    card.fill(0, home, PAGE, 1)
    card.fill(0, home + 2 * PAGE, PAGE, 3)
    card.check(0, view, PAGE, 3)
    card.check(0, view + PAGE, PAGE, 1)
    card.fill(0, view + PAGE, PAGE, 9)
    card.check(0, home, PAGE, 9)
    card.synchronize()
    assert (card.report().checks, card.report().mismatches) == (3, 0)
    card.check(0, home, PAGE, 1)  # overwritten through the view
    card.synchronize()
    assert card.report().mismatches == 1
    assert "overwritten at offset 0" in card.report().first_problem


def test_a_page_keeps_its_bytes_when_it_moves() -> None:
    card = device()
    handle = card.create(PAGE)
    first = open_range(card, [handle])
    card.fill(0, first, PAGE, 4)
    card.synchronize()
    card.unmap(first, PAGE)
    second = open_range(card, [handle])
    card.check(0, second, PAGE, 4)
    card.synchronize()
    assert card.report().mismatches == 0


def test_released_memory_comes_back_empty() -> None:
    card = device()
    start = open_range(card, [handle := card.create(PAGE)])
    card.fill(0, start, PAGE, 4)
    card.synchronize()
    card.release(handle)
    assert card.ledger.reserved == PAGE  # mapped still
    card.unmap(start, PAGE)
    assert card.ledger.reserved == card.handles == 0
    again = open_range(card, [card.create(PAGE)])
    card.check(0, again, PAGE, 4)
    card.synchronize()
    assert card.report().mismatches == 1


def test_copies_move_bytes() -> None:
    card = device()
    start = open_range(card, [card.create(PAGE), card.create(PAGE)])
    card.fill(0, start, PAGE, 5)
    card.copy(0, start + PAGE, start, PAGE)
    card.check(0, start + PAGE, PAGE, 5)
    card.synchronize()
    assert card.report().mismatches == 0


@pytest.mark.parametrize("offset", [0, 512, PAGE - 512])
@pytest.mark.parametrize("size", [1, 7, 511, 4096, 40_001, 100_000])
def test_a_changed_word_is_found(offset: int, size: int) -> None:
    """Whatever the range: a neighbour that writes into its first or last 512 bytes is noticed."""
    card = device()
    start = open_range(card, [card.create(PAGE), card.create(PAGE)]) + offset
    last = (size - 1) // 512 * 512
    for where in {0, last}:
        before = card.report().mismatches
        card.fill(0, start, size, 6, 16 << 10)
        card.check(0, start, size, 6, 16 << 10)
        card.fill(0, start + where, 512, 7, 16 << 10)
        card.check(0, start, size, 6, 16 << 10)
        card.synchronize()
        assert card.report().mismatches == before + 1


def test_plain_allocations() -> None:
    card = device()
    address = card.malloc(3 * MIB)
    card.fill(0, address, 3 * MIB, 1)
    card.check(0, address, 3 * MIB, 1)
    assert card.ledger.reserved == 3 * MIB
    card.mfree(address)
    assert card.ledger.reserved == 0
    assert (card.report().checks, card.report().mismatches) == (1, 0)
    with pytest.raises(_core.RuleViolation):
        card.mfree(address)


def test_the_rules_are_those_of_the_model_device() -> None:
    card = device()
    start, handle = card.reserve(2 * PAGE), card.create(PAGE)
    with pytest.raises(_core.RuleViolation, match="one whole handle"):
        card.map(start, 2 * PAGE, handle)
    card.map(start, PAGE, handle)
    with pytest.raises(_core.RuleViolation, match="mapped already"):
        card.map(start, PAGE, handle)
    with pytest.raises(_core.RuleViolation, match="still mapped"):
        card.free_address(start, 2 * PAGE)
    with pytest.raises(_core.RuleViolation, match="not mapped"):
        card.set_access(start, 2 * PAGE)
    card.unmap(start, PAGE)
    card.free_address(start, 2 * PAGE)
    card.release(handle)
    with pytest.raises(_core.RuleViolation, match="released before"):
        card.release(handle)
    assert (card.mappings, card.handles, card.reservations, card.areas) == (0, 0, 0, 0)


def test_the_card_runs_out_of_memory() -> None:
    card = device()
    handles = [card.create(PAGE) for _ in range(PAGES)]
    with pytest.raises(_core.DriverFailure, match="out of memory"):
        card.create(PAGE)
    card.release(handles[0])
    card.create(PAGE)


def test_the_limit_of_memory_areas_is_kept_and_named() -> None:
    card = device(most_areas=4)
    start = card.reserve(8 * PAGE)
    handles = [card.create(PAGE) for _ in range(3)]
    card.map(start + PAGE, PAGE, handles[0])  # the reservation is in three parts now
    assert card.areas == 3
    with pytest.raises(_core.DriverFailure, match="failed"):
        card.map(start + 3 * PAGE, PAGE, handles[1])  # and would be in five
    assert "vm.max_map_count" in card.last_problem
    assert (card.mappings, card.areas) == (1, 3)
    card.map(start + 2 * PAGE, PAGE, handles[1])  # beside another: one more
    with pytest.raises(_core.DriverFailure, match="out of addresses"):
        card.reserve(PAGE)
    card.unmap(start + PAGE, 2 * PAGE)
    assert card.areas == 1
    assert 0 < device().most_areas < 1 << 40


# --- order ------------------------------------------------------------------------------------------------------------


def test_work_is_late_and_events_tell() -> None:
    card = device(lag=3)
    start = open_range(card, [card.create(PAGE)])
    card.fill(1, start, PAGE, 1)
    event = card.event_record(1)
    for _ in range(3):
        assert not card.event_query(event)
        card.advance()
    assert card.event_query(event)


def test_never_means_that_only_a_waiting_host_gets_anything_done() -> None:
    card = device(lag=-1)
    start = open_range(card, [card.create(PAGE)])
    card.fill(1, start, PAGE, 1)
    event = card.event_record(1)
    card.advance(1000)
    assert not card.event_query(event)
    card.event_synchronize(event)
    assert card.event_query(event)


def test_a_wait_makes_a_stream_wait() -> None:
    card = device(lag=5)
    start = open_range(card, [card.create(PAGE)])
    card.fill(1, start, PAGE, 1)
    card.order_behind(2, 1)
    card.check(2, start, PAGE, 1)
    card.synchronize()
    assert card.report().mismatches == 0


def test_what_a_waiting_host_needs_is_done_on_other_streams_too() -> None:
    card = device(lag=-1)
    start = open_range(card, [card.create(PAGE)])
    card.fill(1, start, PAGE, 1)
    card.stream_wait(2, card.event_record(1))
    card.check(2, start, PAGE, 1)
    card.event_synchronize(card.event_record(2))
    assert (card.report().checks, card.report().mismatches) == (1, 0)


def test_work_on_memory_that_is_gone_is_noticed() -> None:
    card = device(lag=4)
    start = open_range(card, [card.create(PAGE)])
    card.fill(1, start, PAGE, 1)
    card.unmap(start, PAGE)
    card.synchronize()
    assert card.report().illegal_accesses == 1
    assert "not mapped with access" in card.report().first_problem


# --- soaks ------------------------------------------------------------------------------------------------------------


def late(**options: object) -> _core.HostOptions:
    chosen = _core.HostOptions()
    chosen.capacity, chosen.lag, chosen.seed = 384 * MIB, 100, 1
    for name, value in options.items():
        setattr(chosen, name, value)
    return chosen


def assert_sound(result: _core.SoakResult) -> None:
    assert result.clean, result.report.first_problem
    assert result.allocations == result.frees
    assert result.report.checks >= result.frees + result.uses_by_others
    assert (result.left_reserved, result.left_mappings, result.left_handles) == (0, 0, 0)
    assert result.device_problem == ""


@pytest.mark.slow
@pytest.mark.parametrize("allocator", ["movie", "movie-lean"])
def test_nothing_is_overwritten_early(allocator: str) -> None:
    """10^5 operations over four late streams, every block's pattern checked at its free and by other streams."""
    result = _core.soak_host(allocator, {}, late(), operations=100_000)
    assert_sound(result)
    assert result.allocations + result.frees > 99_000
    assert result.views["created"] > 100
    assert result.views["edited"] > 100
    assert result.waits > 1000
    assert result.uses_by_others > 5000


@pytest.mark.parametrize("name", [entry.name for entry in _core.catalogue()])
def test_every_allocator_keeps_bytes(name: str) -> None:
    assert_sound(_core.soak_host(name, {}, late(), operations=2000, pools=True, validate=True))


@pytest.mark.parametrize("lag", [0, 1, 1000, -1])
def test_whatever_the_lag(lag: int) -> None:
    assert_sound(_core.soak_host("movie-lean", {}, late(lag=lag), operations=2000))


def test_many_threads() -> None:
    assert_sound(_core.soak_host("movie", {}, late(lockstep=False), operations=4000, threads=8))


def test_in_lockstep_a_run_can_be_repeated() -> None:
    def run() -> tuple[object, ...]:
        result = _core.soak_host("movie", {}, late(), operations=1500)
        return result.views, result.waits, result.peak_reserved, result.report.checks

    assert run() == run()


def test_a_dropped_wait_is_caught() -> None:
    """One wait among hundreds is not done. Not each of them matters: the work may have been over anyway."""

    def spoilt(**sabotage: int) -> _core.SoakResult:
        card = late(capacity=192 * MIB, lag=300)
        return _core.soak_host("movie-lean", {}, card, operations=1200, largest=8 * MIB, **sabotage)

    sound = spoilt()
    assert_sound(sound)
    assert sound.waits > 100
    caught = 0
    for number in range(sound.waits // 5, sound.waits * 3 // 5, sound.waits // 35):
        result = spoilt(drop_wait=number)
        assert result.waits >= number - 1  # so the wait that was dropped was asked for
        caught += result.report.mismatches > 0
    assert caught >= 2
    assert spoilt(drop_every_wait=1).report.mismatches > 20


def test_an_early_unmap_and_early_reuse_are_caught() -> None:
    """The driver says too early that work is over: ranges are unmapped under it, memory is used again before it."""
    report = _core.soak_host("movie", {}, late(), operations=2000, early_query=1).report
    assert report.illegal_accesses > 0
    assert report.mismatches > 0


@pytest.mark.parametrize(("option", "value"), [("streams", 0), ("threads", 0), ("largest", 0), ("stride", 12)])
def test_soaks_that_cannot_be(option: str, value: int) -> None:
    with pytest.raises(ValueError, match=r"must|needs"):
        _core.soak_host("movie", **{option: value})
