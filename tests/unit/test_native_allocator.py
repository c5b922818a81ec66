"""The native caching allocator's rules and quirks, one by one, on the model device with the validator on."""

import random

import pytest

from movie import _core

MIB = 1 << 20
NEVER = -1


class Native:
    """A watched native allocator on a device of its own."""

    def __init__(self, capacity: int = 1 << 40, lag: int = 0, **options: object) -> None:
        model = _core.ModelOptions()
        model.capacity = capacity
        model.lag = lag
        self.device = _core.ModelDevice(model)
        self.watch = _core.Watch(self.device, every=1)
        self.allocator = self.watch.make("native", {key: str(value) for key, value in options.items()})

    def malloc(self, size: float, stream: int = 0, pool: int = 0) -> int:
        return self.allocator.malloc(int(size), stream, pool)

    def free(self, *addresses: int) -> None:
        for address in addresses:
            self.allocator.free(address)

    def __getitem__(self, key: str) -> int:
        return self.allocator.statistics()[key]

    @property
    def reserved(self) -> int:
        return self.device.ledger.reserved

    @property
    def allocated(self) -> int:
        return self["allocated_bytes.all.current"]

    def calls(self, name: str) -> int:
        return self.device.ledger.count(name)


# --- sizes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "block"), [(1, 512), (511, 512), (512, 512), (513, 1024), (MIB + 1, MIB + 512)])
def test_blocks_are_multiples_of_512(size, block):
    native = Native()
    native.malloc(size)
    assert native.allocated == block


@pytest.mark.parametrize(
    ("size", "divisions", "block"),
    [
        (2048, 4, 2048),  # not above 512 x divisions: plain rounding
        (2100, 4, 2560),  # 2048 + 1 x 512
        (2600, 4, 3072),
        (4096, 4, 4096),  # powers of two stay
        (5000, 8, 5120),  # steps of 512
        (5 * MIB - 1, 4, 5 * MIB),
        (5 * MIB + 1, 4, 6 * MIB),
        (5 * MIB + 1, 1, 5 * MIB + 512),
        (5 * MIB + 1, 0, 5 * MIB + 512),
        (300 * MIB, 2, 384 * MIB),
    ],
)
def test_rounding_to_divisions_of_a_power_of_two(size, divisions, block):
    native = Native(roundup_power2_divisions=divisions)
    native.malloc(size)
    assert native.allocated == block


def test_divisions_apply_by_size_class():
    # Entry i is for [2^i, 2^(i+1)) MiB; sizes below 1 MiB use entry 0.
    entries = ["0"] * 16
    entries[0], entries[8] = "2", "4"
    native = Native(roundup_power2_divisions="/".join(entries))
    for size, block in [(600 * 1024, 768 * 1024), (3 * MIB + 1, 3 * MIB + 512), (257 * MIB, 320 * MIB)]:
        before = native.allocated
        native.malloc(size)
        assert native.allocated - before == block


@pytest.mark.parametrize(
    ("size", "segment"),
    [(1, 2), (MIB, 2), (MIB + 1, 20), (10 * MIB - 1024, 20), (10 * MIB, 10), (10 * MIB + 1, 12), (33 * MIB, 34)],
)
def test_segment_sizes(size, segment):
    native = Native()
    native.malloc(size)
    assert native.reserved == segment * MIB


def test_large_segment_size_is_an_option():
    native = Native(large_segment_size=40 * MIB)
    native.malloc(5 * MIB)
    assert native.reserved == 40 * MIB


# --- search, split, merge ---------------------------------------------------------------------------------------------


def test_best_fit_takes_the_front_and_leaves_the_rest():
    native = Native()
    a = native.malloc(30 * MIB)
    b = native.malloc(12 * MIB)
    native.free(a, b)
    assert native.malloc(8 * MIB) == b  # the smaller of the two serves
    assert native.malloc(4 * MIB) == b + 8 * MIB
    assert native.malloc(4 * MIB) == a
    assert native.calls("malloc") == 2


def test_small_and_large_requests_have_segments_of_their_own():
    native = Native()
    native.free(native.malloc(20 * MIB))
    native.malloc(MIB)
    assert native.reserved == 22 * MIB
    assert native["segment.small_pool.current"] == native["segment.large_pool.current"] == 1


def test_a_large_rest_of_up_to_1_mib_is_not_split_off():
    native = Native()
    a = native.malloc(9.5 * MIB)
    b = native.malloc(9.5 * MIB)  # leaves exactly 1 MiB
    assert b == a + int(9.5 * MIB)
    assert native.allocated == 20 * MIB
    assert native["inactive_split.all.current"] == 0
    native.free(b)
    c = native.malloc(9.5 * MIB - 512)  # leaves one step more
    assert c == b
    assert native["inactive_split_bytes.all.current"] == MIB + 512


def test_a_small_rest_of_512_bytes_is_split_off():
    native = Native()
    a = native.malloc(MIB)
    b = native.malloc(MIB - 512)
    assert native.malloc(512) == b + MIB - 512
    assert native.reserved == 2 * MIB
    native.free(a)


def test_free_neighbours_merge_but_segments_never_do():
    native = Native()
    blocks = [native.malloc(5 * MIB) for _ in range(8)]  # two segments of 20 MiB, four blocks each
    native.free(*blocks)
    assert native.reserved == 40 * MIB
    assert native["inactive_split.all.current"] == 0  # whole again
    native.malloc(20 * MIB)
    native.malloc(20 * MIB)
    assert native.reserved == 40 * MIB
    native.free(native.malloc(22 * MIB))
    assert native.reserved == 62 * MIB


@pytest.mark.parametrize(("tie", "winner"), [("address", 1), ("segment", 0), ("block", 0)])
def test_tie_rules(tie, winner):
    native = Native(tie=tie)
    blocks = [native.malloc(12 * MIB), native.malloc(12 * MIB)]
    assert blocks[1] < blocks[0]  # addresses of this device descend, so the two rules differ
    native.free(*blocks)
    assert native.malloc(12 * MIB) == blocks[winner]


@pytest.mark.parametrize("tie", ["address", "segment"])
def test_ties_within_a_segment_go_to_the_lowest_address(tie):
    native = Native(tie=tie)
    blocks = [native.malloc(4 * MIB) for _ in range(5)]
    native.free(blocks[2], blocks[0])
    assert native.malloc(4 * MIB) == blocks[0]


def test_the_rest_of_a_split_is_the_older_block():
    """What PyTorch 2.12 goes by is when it made the object: for what is taken at each split, for the rest long ago."""
    native = Native(tie="block")
    blocks = [native.malloc(5 * MIB) for _ in range(4)]  # one segment: the last of them is what was left each time
    native.free(blocks[0], blocks[3])
    assert [native.malloc(5 * MIB), native.malloc(5 * MIB)] == [blocks[3], blocks[0]]


def test_a_block_that_takes_in_its_neighbours_stays_the_one_it_was():
    native = Native(tie="block")
    blocks = [native.malloc(4 * MIB) for _ in range(5)]
    others = [native.malloc(4 * MIB) for _ in range(5)]
    native.free(others[1], others[0], blocks[0], blocks[1])  # merged into others[0] and blocks[1], both made before
    assert native.malloc(8 * MIB) == blocks[0]
    native.free(others[4], blocks[4])  # the rests: others[4] is the younger
    assert native.malloc(4 * MIB) == blocks[4]


def test_memory_stays_with_its_stream():
    native = Native()
    native.free(native.malloc(20 * MIB, stream=1))
    native.malloc(20 * MIB, stream=2)
    assert native.reserved == 40 * MIB


# --- split limit ------------------------------------------------------------------------------------------------------


def test_blocks_beyond_the_split_limit_serve_no_small_request():
    native = Native(max_split_size=20 * MIB)
    native.free(native.malloc(30 * MIB))
    native.malloc(12 * MIB)
    assert native.reserved == 42 * MIB
    assert native["oversize_segments.current"] == 1
    assert native["max_split_size"] == 20 * MIB


@pytest.mark.parametrize(("cached", "reused"), [(44, True), (46, False)])
def test_beyond_the_limit_only_a_close_match_serves_and_is_not_split(cached, reused):
    native = Native(max_split_size=20 * MIB)  # and at most 20 MiB more than asked for, not included
    big = native.malloc(cached * MIB)
    native.free(big)
    again = native.malloc(25 * MIB)
    assert (again == big) is reused
    assert native.allocated == (cached if reused else 26) * MIB


def test_the_close_match_is_an_option():
    native = Native(max_split_size=20 * MIB, max_non_split_rounding=2 * MIB)
    native.free(native.malloc(30 * MIB))
    native.malloc(26 * MIB)
    assert native.reserved == 56 * MIB


def test_oversize_blocks_go_before_everything_else_does():
    native = Native(capacity=100 * MIB, max_split_size=20 * MIB, max_non_split_rounding=2 * MIB)
    native.free(native.malloc(60 * MIB), native.malloc(12 * MIB))
    native.malloc(50 * MIB)
    assert native["num_alloc_retries"] == 0  # the oversize block was enough
    assert native.reserved == 62 * MIB


def test_several_oversize_blocks_go_from_the_largest_on():
    native = Native(capacity=100 * MIB, max_split_size=20 * MIB, max_non_split_rounding=2 * MIB)
    native.free(*[native.malloc(size * MIB) for size in (20, 30, 40)])
    native.malloc(64 * MIB)
    assert native["num_alloc_retries"] == 0
    assert native.reserved == 84 * MIB  # 40 and 30 are gone, 20 stays


# --- garbage collection, caps, retries --------------------------------------------------------------------------------


def collecting() -> Native:
    """On a card capped at 100 MiB, with collection above 50 MiB reserved."""
    native = Native(garbage_collection_threshold=0.5)
    native.allocator.set_memory_cap(100 * MIB)
    return native


def test_garbage_collection_takes_the_old_blocks():
    native = collecting()
    old, young = native.malloc(20 * MIB), native.malloc(20 * MIB)
    native.free(old)  # ages count searches for large blocks: there were 2
    native.malloc(1.5 * MIB, stream=5)  # the third; another 20 MiB
    native.free(young)
    native.malloc(1.5 * MIB, stream=5)  # the fourth
    native.malloc(10 * MIB, stream=6)  # the fifth finds 60 MiB reserved: ages are 3 and 2, 2.5 on average
    assert native["num_device_free"] == 1
    assert native.reserved == 50 * MIB
    assert native.malloc(20 * MIB) == young


def test_a_sweep_of_the_garbage_collection_does_not_stop_at_its_target():
    native = collecting()
    native.free(native.malloc(20 * MIB), native.malloc(20 * MIB))
    native.malloc(14 * MIB, stream=5)
    native.malloc(10 * MIB, stream=6)  # 54 MiB reserved, 4 to reclaim; both blocks are of average age
    assert native["num_device_free"] == 2
    assert native.reserved == 24 * MIB


def test_garbage_collection_waits_for_its_threshold_and_leaves_split_segments():
    native = collecting()
    block = native.malloc(10 * MIB)
    native.malloc(5 * MIB)
    native.free(native.malloc(5 * MIB), block)
    native.malloc(12 * MIB, stream=1)  # 30 MiB reserved: nothing is due
    assert native["num_device_free"] == 0
    native.malloc(30 * MIB, stream=1)
    native.malloc(12 * MIB, stream=1)  # 72 MiB are reserved; the block of 10 MiB is whole and goes, the rest is not
    assert native["num_device_free"] == 1
    assert native.reserved == 74 * MIB


def test_no_garbage_collection_without_a_cap():
    native = Native(garbage_collection_threshold=0.1)
    native.free(native.malloc(100 * MIB))
    native.malloc(20 * MIB, stream=1)
    assert native.calls("mfree") == 0


def test_a_cap_fails_without_asking_the_driver():
    native = Native()
    native.allocator.set_memory_cap(20 * MIB)
    native.malloc(15 * MIB)
    before = native.calls("malloc")
    with pytest.raises(_core.OutOfMemory, match="the memory cap is"):
        native.malloc(15 * MIB)
    assert native.calls("malloc") == before
    native.allocator.set_memory_cap(0)
    native.malloc(15 * MIB)


def test_a_fraction_of_the_card_is_a_cap():
    native = Native(capacity=100 * MIB, memory_fraction=0.25)
    with pytest.raises(_core.OutOfMemory):
        native.malloc(30 * MIB)


def test_a_retry_flushes_what_is_cached():
    native = Native(capacity=40 * MIB)
    native.free(native.malloc(30 * MIB))
    native.malloc(30 * MIB, stream=1)
    assert native["num_alloc_retries"] == 1
    assert native["num_sync_all_streams"] == 1
    assert native["num_ooms"] == 0
    assert native.calls("mfree") == 1


def the_hole(**options):
    """A card of one segment, full, with a pending block that would serve the next request."""
    native = Native(capacity=20 * MIB, lag=NEVER, **options)
    block = native.malloc(5 * MIB)
    native.malloc(5 * MIB)
    native.malloc(9 * MIB)
    native.allocator.record_stream(block, 1)
    native.free(block)
    return native, block


def test_the_retry_does_not_look_at_the_blocks_it_waited_for():
    native, _ = the_hole()
    with pytest.raises(_core.OutOfMemory) as error:
        native.malloc(3 * MIB)
    assert "20.00 MiB" in str(error.value)  # the segment, not the request, is named first
    assert "3.00 MiB" in str(error.value)
    assert native["num_ooms"] == 1
    assert native["num_alloc_retries"] == 1
    native.malloc(3 * MIB)  # the very next request finds it


def test_the_hole_can_be_closed():
    native, block = the_hole(rerun_search=1)
    assert native.malloc(3 * MIB) == block


def test_out_of_memory_changes_nothing_but_caches():
    native = Native(capacity=64 * MIB)
    kept = native.malloc(30 * MIB)
    native.free(native.malloc(20 * MIB))
    with pytest.raises(_core.OutOfMemory):
        native.malloc(60 * MIB)
    assert native.allocated == 30 * MIB
    native.free(kept)
    native.watch.check_all()


# --- other streams ----------------------------------------------------------------------------------------------------


def test_a_block_waits_for_recorded_streams_until_a_malloc_polls():
    native = Native(lag=10)
    block = native.malloc(12 * MIB)
    native.device.advance(1)
    native.allocator.record_stream(block, 1)
    native.free(block)
    assert native["active_bytes.all.current"] == 12 * MIB
    assert native["allocated_bytes.all.current"] == 0
    assert native.malloc(12 * MIB) != block
    for _ in range(10):
        native.device.advance(0)
    assert native["active_bytes.all.current"] == 24 * MIB  # time alone changes nothing
    assert native.malloc(12 * MIB) == block


def test_events_of_a_stream_are_polled_in_order():
    native = Native()
    first, second, third = (native.malloc(12 * MIB) for _ in range(3))
    native.device.plan(1, 100)
    native.allocator.record_stream(first, 1)
    native.free(first)
    native.device.plan(1, 0)
    native.allocator.record_stream(second, 1)
    native.free(second)  # complete at once, but behind the first event in the queue
    native.device.plan(2, 0)
    native.allocator.record_stream(third, 2)
    native.free(third)  # another stream's queue
    assert native.malloc(12 * MIB) == third
    assert native.malloc(12 * MIB) not in (first, second)
    for _ in range(100):
        native.device.advance(0)
    assert {native.malloc(12 * MIB), native.malloc(12 * MIB)} == {first, second}


def test_recording_the_own_stream_or_an_unknown_address_does_nothing():
    native = Native(lag=NEVER)
    block = native.malloc(12 * MIB, stream=3)
    native.allocator.record_stream(block, 3)
    native.allocator.record_stream(12345, 3)
    native.free(block)
    assert native.malloc(12 * MIB, stream=3) == block
    assert native.calls("event_record") == 0


def test_an_event_that_could_not_be_recorded_still_holds_its_block():
    native = Native()
    block = native.malloc(12 * MIB)
    native.allocator.record_stream(block, 1)
    native.device.inject("event_record")
    native.free(block)
    assert native["active.all.current"] == 1
    assert native.malloc(12 * MIB) == block  # the poll records it, late, and sees it complete


# --- pools ------------------------------------------------------------------------------------------------------------


def test_pools_do_not_share():
    native = Native()
    native.free(native.malloc(20 * MIB, pool=1))
    native.malloc(20 * MIB)
    native.malloc(20 * MIB, pool=2)
    assert native.reserved == 60 * MIB


def test_a_pool_keeps_its_memory_until_it_is_released():
    native = Native()
    live = native.malloc(20 * MIB, pool=1)
    native.free(native.malloc(12 * MIB, pool=1))
    native.allocator.empty_cache()
    assert native.reserved == 32 * MIB
    native.allocator.release_pool(1)
    assert native.reserved == 32 * MIB  # as in torch, the next flush takes it
    native.allocator.empty_cache()
    assert native.reserved == 20 * MIB
    native.free(live)
    native.allocator.empty_cache()
    assert native.reserved == 0


@pytest.mark.parametrize("lendable", [False, True])
def test_a_lendable_pool_serves_before_a_request_fails(lendable):
    native = Native(capacity=40 * MIB)
    block = native.malloc(40 * MIB, pool=1)
    native.free(block)
    native.allocator.set_pool_lendable(1, lendable)
    if lendable:
        assert native.malloc(40 * MIB) == block
        assert native["num_alloc_retries"] == 0
    else:
        with pytest.raises(_core.OutOfMemory):
            native.malloc(40 * MIB)


def test_a_lendable_pool_does_not_lend_while_the_driver_has_memory():
    native = Native(capacity=100 * MIB)
    block = native.malloc(40 * MIB, pool=1)
    native.free(block)
    native.allocator.set_pool_lendable(1, True)
    assert native.malloc(40 * MIB) != block


# --- giving back ------------------------------------------------------------------------------------------------------


def test_empty_cache_releases_whole_segments_only():
    native = Native()
    a, b = native.malloc(12 * MIB), native.malloc(6 * MIB)
    native.malloc(6 * MIB)
    native.free(a, b)
    native.allocator.empty_cache()
    assert native.reserved == 20 * MIB


def test_reclaim_takes_the_largest_first_and_waits_only_if_it_must():
    native = Native(lag=NEVER)
    pending = native.malloc(50 * MIB)
    native.allocator.record_stream(pending, 1)
    native.free(native.malloc(30 * MIB), native.malloc(12 * MIB), pending)
    assert native.allocator.reclaim(20 * MIB) == 30 * MIB
    assert native.calls("event_synchronize") == 0
    assert native.allocator.reclaim(60 * MIB) == 62 * MIB
    assert native.calls("event_synchronize") == 1
    assert native.reserved == 0


def test_a_segment_that_the_driver_keeps_stays_cached():
    native = Native()
    block = native.malloc(12 * MIB)
    native.free(block)
    native.device.inject("mfree")
    native.allocator.empty_cache()
    assert native.reserved == 12 * MIB
    assert native.malloc(12 * MIB) == block


# --- reports ----------------------------------------------------------------------------------------------------------


def test_statistics_have_the_keys_of_torch():
    counts = ["allocation", "segment", "active", "inactive_split"]
    sizes = ["allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes", "requested_bytes"]
    kinds = ("all", "large_pool", "small_pool")
    values = ("current", "peak", "allocated", "freed")
    expected = {f"{key}.{kind}.{value}" for key in counts + sizes for kind in kinds for value in values}
    expected |= {f"{key}.{value}" for key in ("oversize_allocations", "oversize_segments") for value in values}
    expected |= {"num_alloc_retries", "num_ooms", "max_split_size", "num_sync_all_streams"}
    expected |= {"num_device_alloc", "num_device_free"}
    assert set(Native().allocator.statistics()) == expected


def test_statistics_of_a_short_history():
    native = Native()
    a = native.malloc(3 * MIB)
    b = native.malloc(5 * MIB + 1)
    native.free(a)
    c = native.malloc(100)
    native.free(c)
    assert native["allocation.all.allocated"] == 3
    assert native["allocation.all.current"] == 1
    assert native["requested_bytes.all.peak"] == 8 * MIB + 1
    assert native["allocated_bytes.large_pool.current"] == 5 * MIB + 512
    assert native["reserved_bytes.all.current"] == 22 * MIB
    assert native["reserved_bytes.small_pool.current"] == 2 * MIB
    # Beside b: the hole that a left, and the segment's end. The small segment is whole.
    assert native["inactive_split.large_pool.current"] == 2
    assert native["inactive_split_bytes.large_pool.current"] == 15 * MIB - 512
    assert native["inactive_split_bytes.small_pool.current"] == 0
    native.free(b)
    assert native["inactive_split.all.current"] == 0
    assert native["inactive_split.all.allocated"] == native["inactive_split.all.freed"]
    assert native["max_split_size"] == -1


def test_unusable_bytes_and_requested_bytes_add_up_to_what_is_reserved():
    native = Native(lag=5)
    random_ = random.Random(7)
    live: dict[int, int] = {}
    for step in range(2000):
        if random_.random() < 0.55:
            size = int(2 ** random_.uniform(0, 26))
            live[native.malloc(size, stream=random_.randrange(3), pool=random_.randrange(2))] = size
        elif live:
            address = random_.choice(list(live))
            if random_.random() < 0.3:
                native.allocator.record_stream(address, random_.randrange(3))
            native.free(address)
            del live[address]
        native.device.advance(random_.randrange(3))
        if step % 50 == 0:
            for stream, pool in ((0, 0), (2, 1), (77, 9)):
                causes = native.allocator.unusable(stream, pool)
                assert sum(causes.values()) + sum(live.values()) == native.reserved


def test_unusable_bytes_by_cause():
    native = Native(lag=NEVER)
    a = native.malloc(5 * MIB)
    native.malloc(5 * MIB - 100)
    native.free(a)
    native.free(native.malloc(12 * MIB))
    native.free(native.malloc(14 * MIB, stream=1), native.malloc(16 * MIB, pool=1))
    pending = native.malloc(18 * MIB, stream=2)
    native.allocator.record_stream(pending, 1)
    native.free(pending)
    assert native.allocator.unusable(0, 0) == {
        "none": 0,
        "hard": 15 * MIB,  # 5 before the live block, 10 behind it
        "soft": 12 * MIB,
        "stream": (14 + 18) * MIB,
        "pool": 16 * MIB,
        "rounding": 100,
    }


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_bad_calls_are_refused():
    native = Native()
    with pytest.raises(ValueError, match="0 bytes"):
        native.malloc(0)
    block = native.malloc(512)
    native.free(block)
    with pytest.raises(ValueError, match="not a live block"):
        _core.make_allocator(native.device, "native").free(block)


def test_more_than_any_card_has_is_out_of_memory():
    with pytest.raises(_core.OutOfMemory):
        Native().malloc((1 << 63) + 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tie": "size"}, "address, block or segment"),
        ({"max_split_size": "1MiB"}, "size in bytes"),
        ({"max_split_size": str(MIB)}, "large_segment_size"),
        ({"large_segment_size": str(9 * MIB)}, "10 MiB"),
        ({"roundup_power2_divisions": "3"}, "power of two"),
        ({"roundup_power2_divisions": "1/2"}, "16"),
        ({"garbage_collection_threshold": "1"}, "below 1"),
        ({"memory_fraction": "-0.5"}, "from 0 to 1"),
        ({"memory_fraction": "nan"}, "from 0 to 1"),
        ({"rerun_search": "yes"}, "0 or 1"),
        ({"color": "red"}, "no option 'color'"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        _core.make_allocator(_core.ModelDevice(), "native", options)


def test_the_catalogue_lists_what_it_makes():
    entries = {entry.name: entry for entry in _core.catalogue()}
    assert "tie" in entries["native"].options
    for name in entries:
        _core.make_allocator(_core.ModelDevice(), name)
    with pytest.raises(ValueError, match="no allocator is called 'glmake'; there are: "):
        _core.make_allocator(_core.ModelDevice(), "glmake")
