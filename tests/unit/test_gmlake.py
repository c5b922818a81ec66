"""GMLake as released: its rounding, its calls, when it stitches and what a view serves."""

import pytest
from watched import GIB, MIB, NEVER, Watched

from movie import _core


def gmlake(frag: int = 64 * MIB, **options) -> Watched:
    return Watched("gmlake", frag=frag, **options)


def two_holes(subject: Watched, size: int) -> None:
    """Two free blocks of `size` bytes, in segments of their own."""
    subject.free(*[subject.malloc(size) for _ in range(2)])


def views(subject: Watched) -> tuple[int, int, int]:
    counters = subject.allocator.views()
    return counters["created"], counters["reused"], counters["evicted"]


# --- sizes and calls --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "allocated", "reserved"),
    [(100, 512, 2 * MIB), (MIB, MIB, 2 * MIB), (MIB + 1, 2 * MIB, 20 * MIB), (9 * MIB, 10 * MIB, 10 * MIB),
     (7 * MIB, 8 * MIB, 20 * MIB), (11 * MIB, 12 * MIB, 12 * MIB)],
)  # fmt: skip
def test_sizes_above_1_mib_are_multiples_of_2_mib(size, allocated, reserved):
    subject = gmlake()
    subject.malloc(size)
    assert subject["allocated_bytes.all.current"] == allocated
    assert subject.reserved == reserved


def test_growth_makes_three_calls_a_chunk():
    subject = gmlake()
    subject.malloc(100 * MIB)
    assert subject.calls("create", "reserve", "map", "set_access") == (50, 1, 50, 50)


def test_small_requests_use_plain_allocations():
    subject = gmlake()
    for _ in range(3):
        subject.malloc(MIB)
    assert subject.calls("malloc", "create") == (2, 0)


def test_each_free_records_an_event():
    subject = gmlake()
    subject.free(subject.malloc(100), subject.malloc(20 * MIB))
    assert subject.calls("event_record") == 2


# --- stitching --------------------------------------------------------------------------------------------------------


def test_free_blocks_are_stitched_before_memory_grows():
    subject = gmlake()
    two_holes(subject, 50 * MIB)
    subject.malloc(100 * MIB)
    assert subject.reserved == 100 * MIB
    assert views(subject) == (1, 0, 0)
    # Two calls a chunk, one by one, and no new handle.
    assert subject.calls("create", "map", "set_access") == (50, 100, 100)
    subject.check()


def test_below_the_limit_memory_grows_by_the_whole_request():
    subject = gmlake(frag=512 * MIB)
    two_holes(subject, 50 * MIB)
    subject.malloc(100 * MIB)
    assert subject.reserved == 200 * MIB
    assert views(subject) == (0, 0, 0)


def test_too_little_to_stitch_means_growth_by_the_whole_request():
    subject = gmlake()
    two_holes(subject, 50 * MIB)
    subject.malloc(102 * MIB)
    assert subject.reserved == 202 * MIB


def test_the_largest_blocks_are_taken_first_and_the_last_is_cut():
    subject = gmlake()
    blocks = [subject.malloc(size * MIB) for size in (30, 80, 60)]
    subject.free(*blocks)
    subject.malloc(100 * MIB)  # 80 and 20 of the 60
    assert subject.reserved == 170 * MIB
    assert subject.malloc(30 * MIB) == blocks[0]
    assert subject.malloc(40 * MIB) == blocks[2] + 20 * MIB
    subject.check()


def test_a_large_enough_block_comes_before_any_view():
    subject = gmlake()
    two_holes(subject, 50 * MIB)
    subject.free(subject.malloc(100 * MIB))
    whole = subject.malloc(200 * MIB)
    subject.free(whole)
    assert subject.malloc(100 * MIB) == whole
    assert views(subject) == (1, 0, 0)


def test_streams_are_not_mixed():
    subject = gmlake()
    subject.free(subject.malloc(50 * MIB, stream=1), subject.malloc(50 * MIB, stream=2))
    subject.malloc(100 * MIB, stream=1)
    assert subject.reserved == 200 * MIB


def test_private_pools_are_not_mixed():
    subject = gmlake()
    subject.free(subject.malloc(50 * MIB, pool=1), subject.malloc(50 * MIB), subject.malloc(50 * MIB))
    subject.free(subject.malloc(100 * MIB))
    subject.malloc(100 * MIB, pool=1)
    assert subject.reserved == 250 * MIB
    subject.check()


# --- views ------------------------------------------------------------------------------------------------------------


def test_a_view_serves_again_without_driver_calls():
    subject = gmlake()
    two_holes(subject, 50 * MIB)
    view = subject.malloc(100 * MIB)
    subject.free(view)
    before = subject.calls("map")
    assert subject.malloc(100 * MIB) == view
    assert subject.calls("map") == before
    assert views(subject) == (1, 1, 0)


def test_a_view_serves_smaller_requests_with_its_first_chunks():
    subject = gmlake()
    first, second = subject.malloc(50 * MIB), subject.malloc(50 * MIB)
    subject.free(first, second)
    view = subject.malloc(100 * MIB)
    subject.free(view)
    assert subject.malloc(60 * MIB) == view
    # What it does not use is free: of the second block taken, the highest addresses first, 10 of 50 MiB are in use.
    assert subject.malloc(40 * MIB) == first + 10 * MIB
    assert subject.reserved == 100 * MIB
    subject.check()


def test_a_view_that_is_far_too_large_does_not_serve():
    subject = gmlake(reuse=1.5)
    two_holes(subject, 50 * MIB)
    subject.free(subject.malloc(100 * MIB))
    assert subject.malloc(60 * MIB)  # 100 > 1.5 x 60, and no other free block is large enough
    assert views(subject)[1] == 0
    assert subject.reserved == 160 * MIB


def test_a_view_with_a_chunk_in_use_does_not_serve():
    subject = gmlake()
    two_holes(subject, 50 * MIB)
    subject.free(subject.malloc(100 * MIB))
    block = subject.malloc(20 * MIB)
    subject.malloc(100 * MIB)
    assert subject.reserved == 200 * MIB
    subject.free(block)
    subject.malloc(100 * MIB)
    assert views(subject) == (1, 1, 0)
    assert subject.reserved == 200 * MIB


def test_a_freed_view_gives_its_blocks_back_to_the_heap():
    subject = gmlake()
    first, second = subject.malloc(50 * MIB), subject.malloc(50 * MIB)
    subject.free(first, second)
    subject.free(subject.malloc(100 * MIB))
    assert {subject.malloc(50 * MIB), subject.malloc(50 * MIB)} == {first, second}


def test_too_many_bytes_of_views_drop_the_idle_ones():
    subject = gmlake(auto_gc=150 * MIB)
    two_holes(subject, 50 * MIB)
    subject.free(subject.malloc(100 * MIB))
    two_holes(subject, 200 * MIB)
    subject.malloc(300 * MIB)  # 400 MiB of views: the first one goes, not the one that is asked for
    assert views(subject) == (2, 0, 1)
    subject.check()


def test_views_whose_work_is_not_done_stay():
    subject = gmlake(auto_gc=150 * MIB, lag=NEVER)
    two_holes(subject, 50 * MIB)
    subject.free(subject.malloc(100 * MIB))
    two_holes(subject, 200 * MIB)
    subject.malloc(300 * MIB)
    assert views(subject) == (2, 0, 0)


# --- giving back ------------------------------------------------------------------------------------------------------


def test_empty_cache_drops_views_and_segments():
    subject = gmlake()
    two_holes(subject, 50 * MIB)
    subject.free(subject.malloc(100 * MIB))
    subject.allocator.empty_cache()
    assert subject.reserved == 0
    # One unmap for each of two segments and the view.
    assert subject.calls("unmap", "release", "free") == (3, 50, 3)
    subject.check()


def test_a_retry_releases_whole_segments_only():
    subject = gmlake(capacity=200 * MIB)
    keep = subject.malloc(20 * MIB, stream=1)
    subject.free(subject.malloc(100 * MIB, stream=1))
    subject.malloc(150 * MIB)
    assert subject["num_alloc_retries"] == 1
    assert subject.reserved == 170 * MIB
    # The first try created chunks until the card was full, then released them.
    assert subject.calls("create") == 60 + 41 + 75
    subject.free(keep)


def test_a_live_view_keeps_the_chunks_that_it_maps():
    """A segment goes back of which a live view maps chunks that it does not use."""
    subject = gmlake()
    subject.free(*[subject.malloc(50 * MIB) for _ in range(3)])
    view = subject.malloc(150 * MIB)
    subject.free(view)
    assert subject.malloc(100 * MIB) == view
    subject.allocator.empty_cache()
    assert subject.calls("unmap", "release") == (1, 0)  # from its home; its memory stays, mapped in the view
    assert subject.reserved == 150 * MIB
    subject.check()
    subject.free(view)
    subject.malloc(100)  # the view goes at the next call
    assert subject.calls("unmap", "release") == (2, 25)
    assert subject.reserved == 102 * MIB
    assert views(subject) == (1, 1, 1)
    subject.check()


def test_out_of_memory_leaves_everything_as_it_was():
    subject = gmlake(capacity=100 * MIB)
    subject.malloc(60 * MIB)
    with pytest.raises(_core.OutOfMemory):
        subject.malloc(60 * MIB)
    assert subject.reserved == 60 * MIB
    subject.check()


# --- when the driver refuses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["reserve", "map", "set_access"])
@pytest.mark.parametrize("k", [1, 7])
def test_a_failed_stitch_is_undone_and_tried_again(call, k):
    subject = gmlake()
    two_holes(subject, 50 * MIB)
    subject.device.inject(call, k, False)
    subject.malloc(100 * MIB)
    assert subject.reserved == 100 * MIB
    assert views(subject) == (1, 0, 0)
    subject.check()


@pytest.mark.parametrize("call", ["create", "reserve", "map", "set_access"])
def test_a_failed_growth_is_undone(call):
    subject = gmlake()
    subject.malloc(20 * MIB)
    first = 1 if call == "reserve" else 7
    for k in (first, first + 1):  # the retry fails as well
        subject.device.inject(call, k, False)
    with pytest.raises(_core.OutOfMemory):
        subject.malloc(GIB)
    assert subject.reserved == 20 * MIB
    subject.check()
    subject.malloc(GIB)


@pytest.mark.parametrize("call", ["synchronize", "unmap", "release", "free"])
def test_what_cannot_be_given_back_is_given_back_later(call):
    subject = gmlake()
    two_holes(subject, 50 * MIB)
    subject.free(subject.malloc(100 * MIB))
    subject.device.inject(call, 1, False)
    subject.allocator.empty_cache()
    subject.check()
    subject.allocator.empty_cache()
    assert subject.reserved == 0
    subject.check()
