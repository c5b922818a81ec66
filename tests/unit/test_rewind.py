"""A pool that goes back to an earlier moment, as PyTorch's trees of CUDA graphs want it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from movie import _core

MIB = 1 << 20
POOL, STREAM, OTHER = 1, 1, 2


class Subject:
    """MOVie on a card, under the validator, which hears of a rewind as of frees and requests."""

    def __init__(self, policy: str, card: int, lag: int = 0) -> None:
        options = _core.ModelOptions()
        options.capacity, options.lag = card, lag
        self.device = _core.ModelDevice(options)
        self.watch = _core.Watch(self.device, 1)
        self.allocator, self.controls = _core.testing.watch_movie(self.watch, policy, {})

    def blocks(self, moment: Any) -> list[int]:
        return [address for address, *_ in moment.blocks]


@pytest.fixture(params=["movie", "movie-lean"])
def policy(request):
    return request.param


def views_in(moments: list[Any]) -> int:
    return sum(in_view for moment in moments for *_, in_view in moment.blocks)


def drive(policy: str, seed: int) -> int:
    """400 random steps in a pool that goes back now and then. How many blocks of the moments lay in views."""
    draw = random.Random(seed)
    subject = Subject(policy, card=64 * MIB)
    allocator, controls = subject.allocator, subject.controls
    live: set[int] = set()
    eager: list[int] = []
    moments = []
    rewinds = 0
    for _ in range(400):
        what = draw.random()
        try:
            if what < 0.5:
                size = draw.choice([draw.randint(1, 5000), draw.randint(1, MIB), draw.randint(MIB, 24 * MIB)])
                live.add(allocator.malloc(size, STREAM, POOL))
            elif what < 0.55:
                eager.append(allocator.malloc(draw.randint(1, 4 * MIB), STREAM))
        except _core.OutOfMemory:
            what = 0.6
        if 0.55 <= what < 0.85 and live:
            address = draw.choice(sorted(live))
            live.remove(address)
            allocator.free(address)
        elif 0.85 <= what < 0.92:
            moments.append(controls.moment(POOL))
            assert set(subject.blocks(moments[-1])) == live
        elif 0.92 <= what < 0.98 and moments:
            moment = draw.choice(moments)
            controls.rewind(moment)
            rewinds += 1
            live = set(subject.blocks(moment))
        elif eager:
            allocator.free(eager.pop())
            allocator.empty_cache()
        assert controls.lives_exactly(POOL, sorted(live))
        assert not controls.lives_exactly(POOL, [*sorted(live), 512])
    assert rewinds > 5
    for address in live:
        allocator.free(address)
    subject.watch.check_all()
    return views_in(moments)


def test_a_pool_goes_back_to_any_earlier_moment(policy):
    assert sum(drive(policy, seed) for seed in range(15)) > 15, "blocks in views are among them"


def test_a_block_in_a_view_comes_back_into_the_same_view(policy):
    subject = Subject(policy, card=64 * MIB)
    allocator, controls = subject.allocator, subject.controls
    blocks = [allocator.malloc(8 * MIB, STREAM, POOL) for _ in range(7)]
    for block in blocks[::2]:
        allocator.free(block)
    stitched = allocator.malloc(24 * MIB, STREAM, POOL)
    moment = controls.moment(POOL)
    assert (stitched, 24 * MIB, STREAM, True) in moment.blocks
    allocator.free(stitched)
    pieces = [allocator.malloc(8 * MIB, STREAM, POOL) for _ in range(3)]
    controls.rewind(moment)
    assert controls.lives_exactly(POOL, [*blocks[1::2], stitched])
    assert not set(pieces) & set(subject.blocks(moment))
    subject.watch.check_all()


def test_a_slab_that_was_given_up_comes_back(policy):
    subject = Subject(policy, card=64 * MIB)
    allocator, controls = subject.allocator, subject.controls
    first, second, third = (allocator.malloc(size, STREAM, POOL) for size in (700, 100_000, 512))
    moment = controls.moment(POOL)
    for block in (first, second, third):
        allocator.free(block)
    large = allocator.malloc(60 * MIB, STREAM, POOL)  # takes the slab's page
    controls.rewind(moment)
    assert controls.lives_exactly(POOL, [first, second, third])
    allocator.free(second)
    assert allocator.malloc(100_000, STREAM, POOL) == second, "around it all is taken"
    assert large != second
    subject.watch.check_all()


@pytest.mark.parametrize("size", [4096, 8 * MIB])
def test_it_waits_for_other_streams(policy, size):
    """The validator sees to it that nothing is used again while work of the other stream may still touch it."""
    subject = Subject(policy, card=64 * MIB, lag=1000)
    allocator, controls = subject.allocator, subject.controls
    block = allocator.malloc(size, STREAM, POOL)
    moment = controls.moment(POOL)
    allocator.record_stream(block, OTHER)
    subject.device.work(OTHER)
    allocator.free(block)
    controls.rewind(moment)
    assert controls.lives_exactly(POOL, [block])
    subject.watch.check_all()


def test_a_moment_that_cannot_be_had_again_is_an_error(policy):
    subject = Subject(policy, card=64 * MIB)
    allocator, controls = subject.allocator, subject.controls
    block = allocator.malloc(8 * MIB, STREAM, POOL)
    moment = controls.moment(POOL)
    allocator.free(block)
    allocator.release_pool(POOL)
    with pytest.raises(RuntimeError, match="cannot go back to an earlier moment"):
        controls.rewind(moment)
