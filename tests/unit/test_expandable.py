"""Expandable segments: how they grow, what a request takes, and what goes back when."""

import itertools

import pytest
from watched import GIB, MIB, NEVER, Watched

from movie import _core


def expandable(**options) -> Watched:
    return Watched("expandable", **options)


# --- growing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "reserved", "pages"),
    [(1, 2, 1), (MIB, 2, 1), (MIB + 1, 20, 1), (5 * MIB, 20, 1), (20 * MIB, 20, 1), (21 * MIB, 40, 2), (GIB, 1040, 52)],
)
def test_a_request_maps_whole_pages(size, reserved, pages):
    subject = expandable()
    subject.malloc(size)
    assert subject.reserved == reserved * MIB
    # One range of addresses; a handle and a mapping a page; access once for what was mapped.
    assert subject.calls("reserve", "create", "map", "set_access") == (1, pages, pages, 1)


def test_large_pages_are_an_option():
    subject = expandable(large_segment_size=32 * MIB)
    subject.malloc(5 * MIB)
    assert subject.reserved == 32 * MIB


def test_requests_follow_each_other_without_gaps():
    subject = expandable()
    addresses = [subject.malloc(15 * MIB) for _ in range(4)]
    assert addresses == [addresses[0] + i * 15 * MIB for i in range(4)]
    assert subject.reserved == 60 * MIB


def test_a_free_end_grows_by_what_is_missing():
    subject = expandable()
    keep, end = subject.malloc(20 * MIB), subject.malloc(20 * MIB)
    subject.free(end)
    assert subject.malloc(50 * MIB) == keep + 20 * MIB
    assert subject.reserved == 80 * MIB  # 20 + 50, in pages of 20


def test_small_and_large_streams_and_pools_have_segments_of_their_own():
    subject = expandable()
    for stream, pool in [(0, 0), (1, 0), (0, 1)]:
        subject.malloc(100, stream, pool)
        subject.malloc(3 * MIB, stream, pool)
    assert subject.calls("reserve") == 6
    assert subject.reserved == 3 * 22 * MIB
    assert subject["segment.all.current"] == 6


def test_memory_is_not_shared_between_streams():
    subject = expandable()
    subject.free(subject.malloc(100 * MIB, stream=1))
    subject.malloc(100 * MIB, stream=2)
    assert subject.reserved == 200 * MIB


# --- best fit ---------------------------------------------------------------------------------------------------------


def test_the_end_counts_as_large_as_it_can_grow():
    subject = expandable()
    first, _, hole, _ = (subject.malloc(20 * MIB) for _ in range(4))
    end = subject.malloc(12 * MIB)
    subject.free(hole)  # 20 MiB; the free end is 8 MiB, but it can grow
    assert subject.malloc(6 * MIB) == hole
    assert end + 12 * MIB == first + 92 * MIB
    assert subject.malloc(16 * MIB) == first + 92 * MIB  # too large for the rest of the hole


def test_a_rest_of_512_bytes_is_split_off_from_large_blocks_too():
    subject = expandable()
    hole = subject.malloc(20 * MIB)
    subject.malloc(20 * MIB)
    subject.free(hole)
    assert subject.malloc(20 * MIB - 512) == hole
    assert subject["allocated_bytes.all.current"] == 40 * MIB - 512
    assert subject["inactive_split_bytes.all.current"] == 0  # not counted in expandable segments


def test_a_split_limit_keeps_small_requests_from_the_merged_block():
    """pytorch#193400: each cycle maps new memory."""
    subject = expandable(max_split_size=128 * MIB)
    reserved = []
    for _ in range(10):
        a, b = subject.malloc(91 * MIB), subject.malloc(45.5 * MIB)
        subject.malloc(2 * MIB)
        subject.free(a, b)
        reserved.append(subject.reserved)
    assert all(after > before + 100 * MIB for before, after in itertools.pairwise(reserved))


# --- giving back ------------------------------------------------------------------------------------------------------


def test_free_unmaps_nothing():
    subject = expandable()
    subject.free(subject.malloc(GIB))
    assert subject.reserved == 1040 * MIB
    assert subject.calls("unmap", "release") == (0, 0)


def test_empty_cache_unmaps_whole_free_pages_one_by_one():
    subject = expandable()
    first, second, third = (subject.malloc(50 * MIB) for _ in range(3))
    assert subject.reserved == 160 * MIB
    subject.free(second)  # [50, 100) MiB: the page [60, 80) and the page [80, 100) are free
    subject.allocator.empty_cache()
    assert subject.reserved == 120 * MIB
    assert subject.calls("unmap", "release") == (2, 2)
    assert subject.calls("event_synchronize") == 1  # once a free block that has whole pages; the end of 10 MiB has none
    subject.free(first, third)
    subject.allocator.empty_cache()
    assert subject.reserved == 0
    assert subject.calls("free") == 1  # the addresses too
    subject.check()


def test_a_hole_is_mapped_again_before_the_end_grows():
    subject = expandable()
    blocks = [subject.malloc(20 * MIB) for _ in range(4)]
    subject.free(blocks[1])
    subject.allocator.empty_cache()
    assert subject.malloc(20 * MIB) == blocks[1]
    assert subject.reserved == 80 * MIB


def test_a_retry_gives_back_what_is_idle_and_tries_again():
    subject = expandable(capacity=200 * MIB, lag=NEVER)
    subject.free(subject.malloc(150 * MIB, stream=1))
    subject.malloc(100 * MIB, stream=2)
    assert subject["num_alloc_retries"] == 1
    assert subject.reserved == 100 * MIB
    # What the first try had created before the third page failed went back.
    assert subject.calls("create") == 8 + 3 + 5
    subject.check()


def test_out_of_memory_names_the_request():
    subject = expandable(capacity=100 * MIB)
    subject.malloc(60 * MIB)
    with pytest.raises(_core.OutOfMemory, match=r"50\.00 MiB"):
        subject.malloc(50 * MIB)
    assert subject.reserved == 60 * MIB
    subject.check()


def test_a_block_that_another_stream_uses_waits():
    subject = expandable(lag=NEVER)
    block = subject.malloc(40 * MIB)
    subject.allocator.record_stream(block, 7)
    subject.free(block)
    assert subject.malloc(40 * MIB) != block
    subject.allocator.empty_cache()  # waits for the event
    assert subject.reserved == 40 * MIB


def test_the_memory_cap_counts_pages():
    subject = expandable()
    subject.allocator.set_memory_cap(30 * MIB)
    subject.malloc(5 * MIB)
    with pytest.raises(_core.OutOfMemory):
        subject.malloc(21 * MIB)
    assert subject.reserved == 20 * MIB


# --- when the driver refuses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["reserve", "create", "map", "set_access"])
@pytest.mark.parametrize("k", [1, 2])
def test_a_failed_growth_leaves_nothing_behind(call, k):
    subject = expandable()
    subject.malloc(30 * MIB)
    held = subject.reserved
    # The request needs 2 pages beside the free end of 10 MiB, and both tries fail in the same place.
    for n in range(4):
        subject.device.inject(call, k + n, True)
    stream = 3 if call == "reserve" else 0
    if call in ("set_access", "reserve") and k == 2:
        subject.malloc(50 * MIB, stream)  # there is but one such call
        return
    with pytest.raises(_core.OutOfMemory):
        subject.malloc(50 * MIB, stream)
    assert subject.reserved == held
    subject.check()
    subject.device.heal()
    subject.malloc(50 * MIB, stream)
    subject.check()


@pytest.mark.parametrize("call", ["event_record", "event_synchronize", "unmap", "release", "free"])
def test_what_cannot_be_given_back_is_given_back_later(call):
    subject = expandable()
    subject.free(subject.malloc(60 * MIB))
    subject.device.inject(call, 1, False)
    subject.allocator.empty_cache()
    subject.check()
    subject.free(subject.malloc(60 * MIB))
    subject.allocator.empty_cache()
    assert subject.reserved == 0
    subject.check()
