"""MOVie where the allocator interface ends: captures, pins, pools that lend, caps, history, shortage, shutdown.

The validator watches each step, with all sums compared after each call.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import pytest

from movie import _core

MIB = 1 << 20
POLICIES = ("movie", "movie-lean")


@dataclass
class Subject:
    """MOVie on a card, watched."""

    device: _core.ModelDevice
    watch: _core.Watch
    allocator: _core.Allocator
    controls: Any

    def begin_capture(self, stream: int) -> None:
        self.device.begin_capture(stream)
        self.watch.begin_capture(stream)
        self.controls.begin_capture()

    def end_capture(self, stream: int) -> None:
        self.controls.end_capture()
        self.watch.end_capture(stream)
        self.device.end_capture(stream)

    def pin(self, address: int) -> None:
        self.controls.pin(address)
        self.watch.pin(address)

    def calls(self, *names: str) -> int:
        return sum(self.device.ledger.count(name) for name in names)


@pytest.fixture(params=POLICIES)
def make(request):
    subjects = []

    def build(card: int = 1 << 40, lag: int = 0, **options: str) -> Subject:
        model = _core.ModelOptions()
        model.capacity, model.lag = card, lag
        device = _core.ModelDevice(model)
        watch = _core.Watch(device, 1)
        subjects.append(Subject(device, watch, *_core.testing.watch_movie(watch, request.param, options)))
        return subjects[-1]

    yield build
    for subject in subjects:
        subject.controls.on_shortage(lambda size: 0)  # Python cannot see a callback that holds its own allocator


# --- captures --------------------------------------------------------------------------------------------------------


def test_a_capture_neither_queries_nor_waits_nor_unmaps(make):
    subject = make(64 * MIB, lag=1000)
    allocator = subject.allocator
    subject.begin_capture(1)
    names = ("event_query", "event_synchronize", "synchronize", "unmap", "release", "event_record", "stream_wait")
    before = subject.calls(*names)
    for _ in range(3):
        blocks = [allocator.malloc(size, 1, 1) for size in (4 * MIB, 1000, 3 * MIB, 2 * MIB + 1)]
        for block in blocks:
            subject.device.work(2)
            allocator.record_stream(block, 2)
            allocator.free(block)
    allocator.empty_cache()
    assert allocator.reclaim(100 * MIB) == 0
    assert subject.calls(*names) == before
    subject.end_capture(1)
    subject.device.finish_all()
    allocator.release_pool(1)
    allocator.malloc(60 * MIB, 0, 0)
    subject.watch.check_all()


def test_a_capture_that_runs_out_of_memory_leaves_all_as_it_was(make):
    subject = make(16 * MIB, lag=1000)
    subject.allocator.free(subject.allocator.malloc(12 * MIB))
    subject.begin_capture(1)
    with pytest.raises(_core.OutOfMemory):
        subject.allocator.malloc(8 * MIB, 1, 1)  # what is idle cannot be given back while a graph is captured
    subject.end_capture(1)
    subject.allocator.malloc(8 * MIB, 1, 1)
    subject.watch.check_all()


@pytest.mark.parametrize("size", [4096, 4 * MIB])
def test_a_capture_takes_only_memory_of_its_own_stream(make, size):
    """What its stream left in the pool is free to it, as in PyTorch: graphs that share a pool never run together."""
    subject = make(lag=1000)
    others = subject.allocator.malloc(size, 2, 1)
    subject.allocator.free(others)
    subject.begin_capture(1)
    block = subject.allocator.malloc(size, 1, 1)
    subject.allocator.free(block)
    again = subject.allocator.malloc(size, 1, 1)
    subject.end_capture(1)
    assert again == block
    assert block != others


# --- pins ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [4096, 8 * MIB])
def test_pinned_memory_stays_mapped(make, size):
    subject = make()
    block = subject.allocator.malloc(size)
    subject.pin(block)
    subject.allocator.free(block)
    subject.device.finish_all()
    subject.allocator.empty_cache()


def stitched(subject: Subject, pool: int) -> tuple[int, list[int]]:
    """A block of 12 MiB in a view, and the blocks between its pieces."""
    blocks = [subject.allocator.malloc(4 * MIB, 0, pool) for _ in range(6)]
    for block in blocks[::2]:
        subject.allocator.free(block)
    view = subject.allocator.malloc(12 * MIB, 0, pool)
    assert subject.allocator.views()["created"] == 1
    return view, blocks[1::2]


def test_a_pinned_view_is_not_edited(make):
    subject = make(24 * MIB)
    view, others = stitched(subject, 0)
    subject.pin(view)
    subject.allocator.free(view)
    for block in others:
        subject.allocator.free(block)
    subject.allocator.malloc(20 * MIB)
    subject.watch.check_all()


def test_a_pinned_view_outlives_its_pool(make):
    subject = make(24 * MIB)
    view, _ = stitched(subject, 1)
    subject.pin(view)
    subject.allocator.release_pool(1)
    subject.allocator.free(view)
    subject.device.finish_all()
    subject.allocator.empty_cache()


# --- pools -----------------------------------------------------------------------------------------------------------


def test_a_pool_that_no_longer_lends_gets_back_what_it_lent(make):
    subject = make(40 * MIB, lag=10)
    allocator = subject.allocator
    allocator.set_pool_lendable(1, True)
    blocks = [allocator.malloc(4 * MIB, 0, 1) for _ in range(10)]
    for block in blocks[::2]:
        allocator.free(block)
    borrowed = allocator.malloc(11 * MIB + 512)
    allocator.set_pool_lendable(1, False)
    allocator.free(borrowed)
    with pytest.raises(_core.OutOfMemory):
        allocator.malloc(11 * MIB + 512)
    for _ in range(5):
        allocator.malloc(4 * MIB, 0, 1)
    subject.watch.check_all()


def test_a_pool_may_be_released_while_its_memory_is_lent(make):
    subject = make(40 * MIB, lag=1000)
    allocator = subject.allocator
    allocator.set_pool_lendable(1, True)
    allocator.free(allocator.malloc(40 * MIB, 0, 1))
    blocks = [allocator.malloc(30 * MIB), allocator.malloc(100), allocator.malloc(3 * MIB, 3, 2)]
    allocator.set_pool_lendable(1, False)
    allocator.release_pool(1)
    for block in blocks:
        allocator.free(block)
    allocator.release_pool(2)
    subject.device.finish_all()
    allocator.empty_cache()
    assert subject.watch.held == 0


def test_blocks_of_a_released_pool_are_blocks_like_others(make):
    subject = make(40 * MIB, lag=1000)
    allocator = subject.allocator
    large, small = allocator.malloc(8 * MIB, 1, 1), allocator.malloc(512, 1, 1)
    allocator.release_pool(1)
    for block in (large, small):
        subject.device.work(2)
        allocator.record_stream(block, 2)
        allocator.free(block)
    again = allocator.malloc(8 * MIB, 1, 1)  # a released pool may come again
    for pool in (1, 1, 0, 77):
        allocator.release_pool(pool)
    allocator.free(again)
    allocator.malloc(36 * MIB, 1)
    subject.watch.check_all()


# --- sizes, caps, others on the card ---------------------------------------------------------------------------------


def test_sizes_of_all_kinds(make):
    subject = make(100 * MIB)
    for size in (0, 1, 511, 512, 513, MIB, MIB + 1, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1):
        subject.allocator.free(subject.allocator.malloc(size))
    for size in (1 << 40, 1 << 61, 1 << 62, (1 << 62) + 1, 1 << 63, (1 << 64) - 1):
        with pytest.raises(_core.OutOfMemory, match="Tried to allocate"):
            subject.allocator.malloc(size)
    subject.watch.check_all()


def test_a_cap_holds_whatever_it_is(make):
    subject = make(100 * MIB)
    allocator = subject.allocator
    for cap in (1, 511, 2 * MIB - 1, 2 * MIB, 3 * MIB):
        allocator.set_memory_cap(cap)
        with pytest.raises(_core.OutOfMemory, match="capped"):
            allocator.malloc(3 * MIB)
        assert subject.watch.held == 0
    allocator.set_memory_cap(7 * MIB)
    block = allocator.malloc(3 * MIB)
    allocator.set_memory_cap(2 * MIB)  # below what is held
    with pytest.raises(_core.OutOfMemory):
        allocator.malloc(8 * MIB)
    allocator.free(block)
    allocator.set_memory_cap((1 << 64) - 1)
    allocator.malloc(50 * MIB)
    subject.watch.check_all()


def test_others_on_the_card_are_asked_before_a_request_fails(make):
    subject = make(100 * MIB)
    assert subject.device.external_take(60 * MIB)
    asked = []

    def give(size: int) -> int:
        asked.append(size)
        subject.device.external_give(60 * MIB)
        return 60 * MIB

    subject.controls.on_shortage(give)
    subject.allocator.malloc(80 * MIB)
    assert asked == [80 * MIB]
    subject.watch.check_all()


@pytest.mark.parametrize("given", [0, 1 << 63])
def test_others_who_give_nothing_whatever_they_say(make, given):
    subject = make(100 * MIB)
    subject.device.external_take(60 * MIB)
    subject.controls.on_shortage(lambda size: given)
    with pytest.raises(_core.OutOfMemory, match="belong to others"):
        subject.allocator.malloc(80 * MIB)
    subject.allocator.malloc(30 * MIB)
    subject.watch.check_all()


def test_an_error_of_others_reaches_the_caller_and_breaks_nothing(make):
    subject = make(100 * MIB)
    subject.device.external_take(60 * MIB)

    def give(size: int) -> int:
        raise KeyError("nobody there")

    subject.controls.on_shortage(give)
    with pytest.raises(KeyError):
        subject.allocator.malloc(80 * MIB)
    subject.allocator.malloc(30 * MIB)
    subject.watch.check_all()


# --- history, threads, the end ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [0, 1, 7])
def test_the_history_is_the_last_events_in_order(make, most):
    subject = make(100 * MIB, history=str(most))
    assert subject.controls.history() == []
    for i in range(100):
        subject.allocator.free(subject.allocator.malloc(1000 * (i + 1)))
    events = subject.controls.history()
    assert len(events) == most
    numbers = [event[5] for event in events]
    assert numbers == sorted(numbers)
    assert numbers == list(range(numbers[0], numbers[0] + most)) if most else True
    if most == 7:
        assert [event[0] for event in events][-3:] == ["alloc", "free_requested", "free_completed"]
        assert events[-1][2:5] == (100_000, 0, 0)


def test_threads(make):
    subject = make(2048 * MIB, lag=50)
    allocator = subject.allocator
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        live: list[int] = []
        state = seed
        try:
            for _ in range(600):
                state = (state * 1103515245 + 12345) % (1 << 31)
                kind = state >> 8
                if live and kind % 2:
                    allocator.free(live.pop(kind % len(live)))
                else:
                    size = (512, 100_000, 3 * MIB, 9 * MIB, MIB + 1)[kind % 5]
                    live.append(allocator.malloc(size, kind % 4, kind % 2))
                if live and kind % 11 == 0:
                    allocator.record_stream(live[-1], kind % 4)
                if kind % 97 == 0:
                    allocator.empty_cache()
            for block in live:
                allocator.free(block)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert subject.watch.live_blocks == 0
    subject.watch.check_all()


def test_when_the_driver_shuts_down_nothing_makes_noise(make):
    subject = make(100 * MIB, lag=1000)
    allocator = subject.allocator
    blocks = [allocator.malloc(size) for size in (100, 3 * MIB, 5 * MIB)]
    allocator.record_stream(blocks[1], 1)
    subject.device.shut_down()
    for block in blocks:
        allocator.free(block)
    allocator.empty_cache()
    allocator.reclaim(MIB)
    allocator.release_pool(1)
    with pytest.raises(_core.OutOfMemory):
        allocator.malloc(300 * MIB)


def test_controls_are_of_movie_alone():
    watch = _core.Watch(_core.ModelDevice())
    with pytest.raises(ValueError, match="native is not a MOVie allocator"):
        _core.testing.watch_movie(watch, "native")


# --- growth ----------------------------------------------------------------------------------------------------------


def test_growth_creates_page_by_page_and_sets_access_once(make):
    """No call creates more than 512 MiB, above which drivers take out of all proportion long; nothing is set twice."""
    subject = make(80 << 30)
    for size in (4 << 30, 3 * MIB, 1 << 30):
        before = {name: subject.calls(name) for name in ("create", "map", "set_access")}
        subject.allocator.malloc(size)
        made = {name: subject.calls(name) - count for name, count in before.items()}
        assert made["create"] == made["map"] >= size / (512 * MIB)
        assert made["set_access"] == 1
