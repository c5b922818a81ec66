"""What is said when memory runs out accounts for all of it."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from movie import _core

MIB = 1 << 20


def fill(allocator: _core.Allocator, rng: random.Random) -> None:
    """Allocates on two streams in two pools, and frees less, until it fails."""
    blocks = []
    while True:
        size = rng.choice([rng.randrange(1, MIB), rng.randrange(MIB, 40 * MIB)])
        blocks.append(allocator.malloc(size, rng.randrange(2), rng.randrange(2)))
        if rng.random() < 0.4:
            allocator.free(blocks.pop(rng.randrange(len(blocks))))


@pytest.mark.parametrize("name", ["movie", "movie-lean"])
@given(seed=st.integers(0, 1 << 16))
def test_the_parts_add_up_to_what_is_held(name: str, seed: int) -> None:
    rng = random.Random(seed)
    model = _core.ModelOptions()
    model.capacity = 512 * MIB
    model.lag = rng.choice([0, 50])
    allocator = _core.make_allocator(_core.ModelDevice(model), name, {})
    with pytest.raises(_core.OutOfMemory) as failure:
        fill(allocator, rng)
    said = str(failure.value)
    held, parts = re.search(r"MOVie holds (\S+) MiB: (.+?) in other pools", said).groups()
    figures = [float(figure) for figure in re.findall(r"(\S+) MiB", parts)]
    assert len(figures) == 6
    assert sum(figures) == pytest.approx(float(held), abs=0.05)
