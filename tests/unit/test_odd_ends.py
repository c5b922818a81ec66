"""Views that begin in the free end of one page and end in the free beginning of another."""

import random

import pytest

from movie import _core

MIB = 1 << 20
KIB = 1 << 10


class Run:
    """An allocator that is watched."""

    def __init__(self, **options: str) -> None:
        model = _core.ModelOptions()
        model.capacity = 1 << 34
        self.device = _core.ModelDevice(model)
        self.watch = _core.Watch(self.device, 1)
        self.allocator = self.watch.make("movie-lean", options)

    def take(self, mib: float) -> int:
        return int(self.allocator.malloc(int(mib * MIB), 0, 0))

    @property
    def reserved(self) -> int:
        return int(self.device.ledger.peak_reserved)


def between_two_odd_ends() -> tuple[Run, int]:
    """Free: all but the middle of the second of three pages."""
    run = Run()
    before, middle, behind = (run.take(mib) for mib in (2.5, 1.125, 2.375))
    assert run.reserved == 6 * MIB
    run.allocator.free(before)
    run.allocator.free(behind)
    return run, middle


@pytest.mark.parametrize("longer", [5, 5.5, 6, 6.25])
def test_a_view_never_has_a_page_twice(longer: float) -> None:
    run, middle = between_two_odd_ends()
    view = run.take(4.875)  # two pages, and as much as both ends of the third together
    assert run.reserved == 8 * MIB
    run.allocator.free(view)
    run.allocator.free(middle)
    run.take(longer)  # had the third page been in the view twice, this would lie in it twice
    run.watch.check_all()


def test_ends_of_two_pages_are_joined() -> None:
    run = Run()
    blocks = [run.take(mib) for mib in (2.5, 1.125, 2.375, 2.5, 1.125, 2.375)]
    for block in (blocks[0], blocks[2], blocks[3], blocks[5]):
        run.allocator.free(block)
    reserved = run.reserved
    run.take(8.875)  # four pages, the end of one and the beginning of the other
    assert run.reserved == reserved
    assert run.allocator.views()["created"] == 1
    run.watch.check_all()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", ["movie", "movie-lean"])
def test_blocks_not_much_longer_than_pages(name: str, seed: int) -> None:
    """Large pages on an ample card, and requests of their size and less: most of what is free are ends of pages."""
    model = _core.ModelOptions()
    model.capacity, model.lag = 1 << 40, 50
    device = _core.ModelDevice(model)
    watch = _core.Watch(device, 64)
    allocator = watch.make(name, {"largest_page": str(32 * MIB)})
    draw = random.Random(seed)
    live: list[int] = []
    for _ in range(10_000):
        stream = draw.randrange(4)
        device.advance(stream)
        if live and draw.random() < len(live) / 120:
            allocator.free(live.pop(draw.randrange(len(live))))
        else:
            size = draw.choice((2, 3, 5, 8, 21, 33, 70)) * MIB - draw.randrange(2) * draw.randrange(MIB)
            live.append(allocator.malloc(size, stream, 0))
            if draw.random() < 0.1:
                allocator.record_stream(live[-1], draw.randrange(10))
    assert allocator.views()["created"] > 10
    watch.check_all()
