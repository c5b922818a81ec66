"""Training repeats itself: once iterations are alike, the driver has nothing to do any more."""

import random

import pytest

from movie import _core

MIB = 1 << 20
MEMORY_CALLS = ("create", "release", "map", "unmap", "set_access", "reserve", "free")


def iteration(seed: int, requests: int, streams: int, rare: float | None = None) -> list[tuple[str, int, int, int]]:
    """(alloc, id, bytes, stream) and (free, id, 0, 0) of one iteration that leaves nothing alive.

    All requests are above 1 MiB: `movie-lean` takes the pages of idle slabs for them and gives slabs others later, so
    that with many small requests between them its layout may go on moving. `rare`: the share of the last stream, which
    may be far from asking often enough to be recognised alone.
    """
    draw = random.Random(seed)
    steps: list[tuple[str, int, int, int]] = []
    alive: list[int] = []
    for number in range(requests):
        size = int(draw.choice([2.4, 3.5, 7, 24, 70]) * MIB * draw.uniform(0.5, 1.5))
        stream = draw.randrange(streams)
        if rare is not None:
            stream = streams - 1 if draw.random() < rare else draw.randrange(streams - 1)
        steps.append(("alloc", number, size, stream))
        alive.append(number)
        while len(alive) > 40 or (alive and draw.random() < 0.45):
            steps.append(("free", alive.pop(draw.randrange(len(alive))), 0, 0))
    draw.shuffle(alive)
    return steps + [("free", number, 0, 0) for number in alive]


def memory_calls(device: _core.ModelDevice) -> int:
    calls = device.ledger.calls()
    return sum(calls[name] for name in MEMORY_CALLS)


@pytest.mark.parametrize("name", ["movie", "movie-lean"])
@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_iterations_that_are_alike_need_no_driver(name: str, streams: int, seed: int) -> None:
    made = calls_of(name, iteration(seed, 1000, streams), 8)
    assert made[0] > 0
    assert made[-3:] == [0, 0, 0], made


@pytest.mark.parametrize("lag", [0, 700])
@pytest.mark.parametrize("rare", [0.02, 0.1])
@pytest.mark.parametrize("seed", range(4))
def test_nor_where_a_stream_asks_seldom(rare: float, seed: int, lag: int) -> None:
    made = calls_of("movie-lean", iteration(seed, 1000, 3, rare), 8, lag)
    assert made[0] > 0
    assert made[-3:] == [0, 0, 0], made


def calls_of(name: str, steps: list[tuple[str, int, int, int]], iterations: int, lag: int = 0) -> list[int]:
    """Driver calls for memory in each of the iterations."""
    model = _core.ModelOptions()
    model.lag = lag
    device = _core.ModelDevice(model)
    allocator = _core.make_allocator(device, name, {})
    made = []
    for _ in range(iterations):
        before = memory_calls(device)
        blocks = {}
        for what, number, size, stream in steps:
            if what == "alloc":
                device.advance(stream)
                blocks[number] = allocator.malloc(size, stream, 0)
            else:
                allocator.free(blocks.pop(number))
        made.append(memory_calls(device) - before)
    return made


@pytest.mark.parametrize("name", ["movie", "movie-lean"])
def test_iterations_that_differ_are_not_taken_for_alike(name: str) -> None:
    device = _core.ModelDevice()
    watch = _core.Watch(device, 1)
    allocator = watch.make(name, {})
    for round_ in range(3):  # each a different program: what was learnt must do no harm
        blocks = {}
        for what, number, size, stream in iteration(round_, 700, 2):
            if what == "alloc":
                device.advance(stream)
                blocks[number] = allocator.malloc(size, stream, 0)
            else:
                allocator.free(blocks.pop(number))
    watch.check_all()
