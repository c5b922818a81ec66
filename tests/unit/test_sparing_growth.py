"""Where the card has room `movie` grows, but not without end: what lies free is used before much more is reserved than
was ever in use. Where pages are small, growth is cheaper than views.
"""

import random

import pytest
from allocator_run import AMPLE, Run

from movie import _core

MIB = 1 << 20
GIB = 1 << 30
SMALL_PAGES = 24 * GIB  # too small a card for pages that make views cheap


def enough(run: Run) -> float:
    """What may be reserved where the card has room."""
    return run.most_in_use * 1.02 + 32 * MIB


def comb(run: Run, tooth: int, teeth: int) -> None:
    """Every second block is freed, and then twice as large ones are wanted."""
    blocks = [run.malloc(tooth) for _ in range(teeth)]
    for block in blocks[::2]:
        run.free(block)
    for _ in range(teeth // 4):
        run.malloc(2 * tooth)


@pytest.mark.parametrize("tooth", [40 * MIB, 64 * MIB, 100 * MIB, 333 * MIB])
def test_holes_between_live_blocks_are_used_before_memory_grows(tooth: int) -> None:
    run = Run("movie", AMPLE)
    comb(run, tooth, 64)
    rival = Run("expandable", AMPLE)
    comb(rival, tooth, 64)
    assert run.allocator.views()["created"] > 0
    assert run.most_in_use <= run.reserved <= enough(run)
    assert run.reserved < rival.reserved


def test_no_views_where_pages_are_small() -> None:
    run = Run("movie", SMALL_PAGES)
    comb(run, 64 * MIB, 64)
    assert run.allocator.views()["created"] == 0
    assert run.reserved > enough(run)


@pytest.mark.parametrize("seed", range(6))
def test_never_much_more_than_the_rivals(seed: int) -> None:
    def reserved(name: str) -> int:
        draw = random.Random(seed)
        run = Run(name, AMPLE)
        alive = [run.malloc(int(draw.uniform(2, 90) * MIB)) for _ in range(60)]
        for _ in range(12):
            scale = draw.uniform(0.5, 1.5)
            passing: list[int] = []
            for _ in range(80):
                passing.append(run.malloc(int(scale * draw.choice([1.5, 6, 20, 20, 70, 300]) * MIB)))
                if draw.random() < 0.4:
                    run.free(passing.pop(draw.randrange(len(passing))))
            draw.shuffle(passing)
            for block in passing:
                run.free(block)
        for block in alive:
            run.free(block)
        return run.reserved

    assert reserved("movie") <= 1.02 * min(reserved("native"), reserved("expandable"))


def test_a_budget_is_not_passed() -> None:
    budget = 6 * GIB
    run = Run("movie", AMPLE, budget=str(budget))
    comb(run, 64 * MIB, 64)
    assert run.in_use <= run.reserved <= budget


def test_other_streams_are_not_waited_for() -> None:
    model = _core.ModelOptions()
    model.capacity, model.lag = AMPLE, -1
    device = _core.ModelDevice(model)
    allocator = _core.make_allocator(device, "movie", {})
    blocks = [allocator.malloc(64 * MIB, stream, 0) for _ in range(32) for stream in (1, 2)]
    for block in blocks[::2]:
        allocator.free(block)
    for _ in range(16):
        allocator.malloc(128 * MIB, 2, 0)
    assert device.ledger.count("stream_wait") == 0
