"""Policy lean lays blocks that stay close together and keeps them apart from those that go, told by their sizes; and
requests too large to share a slab well have places of their own under both policies.
"""

import random

import pytest
from allocator_run import Run
from hypothesis import given, settings
from hypothesis import strategies as st

MIB = 1 << 20
KIB = 1 << 10
UNIT = 512
GONE = 7 * MIB + UNIT  # a size of which nothing stays


def train(run: Run, seed: int, layers: int, iterations: int) -> list[int]:
    """Weights; then passes whose activations differ in size, which leave gradients, and a state for each weight."""
    rng = random.Random(seed)
    sizes = [rng.randrange(3 * MIB, 9 * MIB, UNIT) for _ in range(4)]
    weights = [size for _ in range(layers) for size in sizes]
    kept = [run.malloc(size) for size in weights]
    for iteration in range(iterations):
        length = rng.randrange(1000, 9000)
        saved = [run.malloc(length * 2 * KIB) for _ in range(layers)]
        gradients = []
        for layer in reversed(range(layers)):
            again = [run.malloc(length * rng.randrange(1, 5) * KIB) for _ in range(4)]
            gradients += [run.malloc(size) for size in weights[4 * layer : 4 * layer + 4]]
            for block in (*again, saved[layer]):
                run.free(block)
        if iteration == 0:
            kept += [run.malloc(size) for size in weights]
        for block in gradients:
            run.free(block)
    return kept


def wasted(run: Run) -> float:
    return run.reserved / run.most_in_use - 1


def test_what_stays_is_kept_apart() -> None:
    with_lifetimes, without = [], []
    for seed in range(8):
        for found, options in ((with_lifetimes, {}), (without, {"lifetimes": "off"})):
            run = Run("movie-lean", **options)
            train(run, seed, layers=12, iterations=6)
            found.append(wasted(run))
    assert sum(with_lifetimes) < 0.75 * sum(without)


def test_what_is_loaded_first_lies_side_by_side() -> None:
    # Of no size is anything known; then of each that nothing of it ever went.
    run = Run("movie-lean")
    rng = random.Random(1)
    blocks = [run.malloc(rng.choice([9 * MIB - UNIT, 3 * MIB + 3 * UNIT, 800 * KIB])) for _ in range(100)]
    ends = {block + run.blocks[block] for block in blocks}
    assert sum(block in ends for block in blocks) == len(blocks) - 1


def low_end(run: Run, sizes: list[int]) -> int:
    """Blocks of these sizes that stay; returns where they end. What follows is free."""
    kept = [run.malloc(size) for size in sizes]
    room = run.malloc(200 * MIB)
    run.malloc(UNIT)
    for _ in range(40):  # far more is requested than is ever in use
        run.free(run.malloc(GONE))
        run.free(room)
        room = run.malloc(200 * MIB)
    run.free(room)
    return kept[-1] + sizes[-1]


@pytest.mark.parametrize("stays", [True, False])
def test_the_low_end_is_for_what_stays(stays: bool) -> None:
    run = Run("movie-lean")
    size = 5 * MIB + UNIT
    low = low_end(run, [size] * 10)
    block = run.malloc(size if stays else GONE)
    # What goes keeps away from the low end of what is free.
    assert (block == low) == stays


def test_whole_pages_that_stay_begin_with_a_page() -> None:
    run = Run("movie-lean")
    low = low_end(run, [4 * MIB, 3 * MIB])
    assert run.malloc(4 * MIB) == low + MIB
    assert run.malloc(4 * MIB) == low + 5 * MIB


def test_what_stays_goes_where_it_ends_with_a_page() -> None:
    run = Run("movie-lean")
    low = low_end(run, [3 * MIB, 5 * MIB, 4 * MIB])
    hole = run.malloc(3 * MIB)
    assert [hole, run.malloc(5 * MIB)] == [low, low + 3 * MIB]
    run.malloc(4 * MIB)
    run.malloc(3 * MIB)  # the room behind begins inside a page now
    run.free(hole)
    # The hole is the lower place, but it begins with a page.
    assert run.malloc(3 * MIB) == low + 15 * MIB
    assert run.malloc(3 * MIB) == hole


@pytest.mark.parametrize("name", ["movie", "movie-lean"])
@given(size=st.integers(257 * KIB, MIB), count=st.integers(1, 60))
@settings(deadline=None)
def test_requests_below_a_mebibyte_fill_pages(name: str, size: int, count: int) -> None:
    # In slabs of two mebibytes up to a third would be lost. Growth goes by pages, of which the last may be open.
    run = Run(name, page=str(2 * MIB))
    for _ in range(count):
        run.malloc(size)
    rounded = -(-size // UNIT) * UNIT
    assert run.reserved == -(-rounded * count // (2 * MIB)) * 2 * MIB


@given(seed=st.integers(0, 1 << 16), layers=st.integers(1, 6), iterations=st.integers(1, 4))
@settings(deadline=None, max_examples=30)
def test_lean_never_leaves_more_than_the_ends_of_pages(seed: int, layers: int, iterations: int) -> None:
    # Two part pages beside each live block at most.
    run = Run("movie-lean")
    train(run, seed, layers, iterations)
    blocks = 15 * layers + 4
    assert run.reserved <= run.most_in_use + blocks * 4 * MIB


def test_what_lives_is_remembered_when_sizes_without_end_are_forgotten() -> None:
    run = Run("movie-lean")
    kept = run.malloc(MIB)
    for size in range(MIB, MIB + 70_000 * UNIT, UNIT):
        run.free(run.malloc(size))
    run.free(kept)
    assert run.reserved <= MIB + 70_000 * UNIT + 8 * MIB


def iteration(seed: int, requests: int) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(300 * KIB, 20 * MIB, UNIT) for _ in range(requests)]


def memory_calls(run: Run) -> int:
    return sum(run.device.ledger.count(call) for call in ("create", "map", "unmap", "reserve", "set_access"))


@pytest.mark.parametrize("seed", range(5))
def test_an_interrupted_repetition_is_soon_trusted_again(seed: int) -> None:
    """Iterations end in another way each (a step that logs, say), by requests that are never repeated."""
    run = Run("movie-lean")
    sizes = iteration(seed, 700)
    calls = []
    for turn in range(6):
        before = memory_calls(run)
        blocks: list[int] = []
        for size in sizes:
            blocks.append(run.malloc(size))
            if len(blocks) > 40:
                run.free(blocks.pop(0))
        for size in iteration(1000 * seed + turn, 20):
            run.free(run.malloc(size))
        for block in blocks:
            run.free(block)
        calls.append(memory_calls(run) - before)
    assert not any(calls[3:]), calls


SIZES = st.one_of(st.integers(1, 256 * KIB), st.integers(257 * KIB, MIB), st.integers(MIB, 9 * MIB))


@pytest.mark.parametrize("name", ["movie", "movie-lean"])
@given(
    steps=st.lists(st.tuples(SIZES, st.integers(0, 2), st.booleans()), min_size=20, max_size=150),
    seed=st.integers(0, 1 << 16),
)
@settings(deadline=None, max_examples=60)
def test_nothing_comes_to_the_last_resorts_where_the_card_has_room(
    name: str, steps: list[tuple[int, int, bool]], seed: int
) -> None:
    # A request between the sizes of slabs and those of views once did, whatever room there was.
    run = Run(name)
    rng = random.Random(seed)
    live: list[int] = []
    for size, stream, keep in steps:
        live.append(run.allocator.malloc(size, stream, 0))
        if not keep:
            run.allocator.free(live.pop(rng.randrange(len(live))))
        assert run.allocator.statistics()["num_alloc_retries"] == 0
