"""A stream waits for another only where nothing else serves: what `movie-lean` does before, and what that may cost."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from movie import _core

MIB = 1 << 20
LAG = 1000
UNUSED = 1 / 100  # what lean may leave unused where there are several streams


@dataclass
class Run:
    """An allocator on a late device, watched."""

    name: str = "movie-lean"
    card: int = 1 << 40
    live: int = 0
    peak: int = 0
    sizes: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        model = _core.ModelOptions()
        model.capacity, model.lag = self.card, LAG
        self.device = _core.ModelDevice(model)
        self.watch = _core.Watch(self.device, 1)
        self.allocator = self.watch.make(self.name, {})

    def take(self, mib: int, stream: int) -> int:
        self.device.advance(stream)
        address = self.allocator.malloc(mib * MIB, stream, 0)
        self.sizes[address] = mib * MIB
        self.live += mib * MIB
        self.peak = max(self.peak, self.live)
        return address

    def give(self, address: int) -> None:
        self.live -= self.sizes.pop(address)
        self.allocator.free(address)

    @property
    def waits(self) -> int:
        return self.device.ledger.count("stream_wait")

    @property
    def reserved(self) -> int:
        return self.device.ledger.peak_reserved


def work(run: Run, stream: int, requests: int) -> None:
    """The stream works on with a small block that comes and goes, in a slab that it has."""
    for _ in range(requests):
        run.give(run.take(1, stream))


@pytest.mark.parametrize("name", ["movie", "movie-lean"])
def test_what_was_freed_long_ago_needs_no_wait(name: str) -> None:
    run = Run(name, card=112 * MIB)
    run.take(1, 0)
    run.take(4, 1)
    run.give(run.take(100, 0))
    run.give(run.take(100, 1))  # streams want each other's memory from now on
    before = run.waits
    run.give(run.take(100, 0))
    work(run, 0, 3 * LAG)  # nobody has asked for an event of this stream, which never rests
    waits = run.waits
    block = run.take(100, 1)
    assert run.waits == waits <= before + 1
    run.give(block)
    run.take(100, 0)  # fresh, and of another stream: here nothing else is left
    assert run.waits == waits + 1
    run.watch.check_all()


def test_a_program_of_one_stream_records_no_events() -> None:
    run = Run()
    work(run, 0, 3 * LAG)
    assert run.device.ledger.count("event_record") == 0


def test_pages_that_are_ready_are_joined_before_fresh_ones_are_waited_for() -> None:
    run = Run()
    ready = [run.take(10, 0) for _ in range(9)]
    fresh = run.take(80, 1)
    for block in ready[::2]:
        run.give(block)
    reserved = run.reserved
    run.give(fresh)
    run.take(50, 0)
    assert (run.waits, run.reserved) == (0, reserved)
    run.watch.check_all()


def test_a_run_grows_back_to_what_it_held_without_waits() -> None:
    run = Run()
    first = run.take(200, 0)
    second = run.take(100, 1)
    run.give(first)
    run.allocator.empty_cache()
    assert run.device.ledger.reserved == 100 * MIB
    run.give(second)
    run.take(100, 0)
    assert (run.waits, run.reserved) == (0, 300 * MIB)
    run.take(200, 0)  # beyond that there is only the other stream's
    assert (run.waits, run.reserved) == (1, 300 * MIB)


def climb(run: Run, seed: int, steps: int) -> None:
    """More and more stays alive, on two streams, around blocks that come and go and pass from one to the other."""
    draw = random.Random(seed)
    for _ in range(steps):
        stream = draw.randrange(2)
        coming = [run.take(draw.randrange(2, 60), stream) for _ in range(draw.randrange(1, 4))]
        run.take(draw.randrange(20, 80), stream)
        for block in coming:
            run.give(block)


@pytest.mark.parametrize("seed", range(6))
def test_growing_early_costs_next_to_nothing(seed: int) -> None:
    run = Run()
    climb(run, seed, 400)
    assert run.peak >= (1 - UNUSED) * run.reserved
    assert run.waits < 160  # lean without it: 189 to 197
    run.watch.check_all()
