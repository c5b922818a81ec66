"""A Hypothesis state machine over an allocator on the model device, with a shadow of what must be true.

The shadow knows what a caller knows: its live blocks, the streams they are used on, the size of the card and who else
holds memory of it. The independent validator watches every driver call meanwhile, so the machine itself looks at what
only a caller can tell: addresses, errors, statistics, and whether an out-of-memory error was called for."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from movie import _core

MIB = 1 << 20
GIB = 1 << 30
UNLIMITED = 1 << 46
CALLS = list(_core.ModelDevice().ledger.calls())


@dataclass
class Block:
    address: int
    size: int
    stream: int
    pool: int


@dataclass
class Shadow:
    """What the caller knows."""

    live: list[Block] = field(default_factory=list)
    idle_pools: set[int] = field(default_factory=set)  # private pools that were used and not released

    def overlaps(self, address: int, size: int) -> bool:
        return any(block.address < address + size and address < block.address + block.size for block in self.live)

    @property
    def requested(self) -> int:
        return sum(block.size for block in self.live)


Demand = Callable[[Shadow, int, int], "int | None"]


@dataclass(frozen=True)
class Subject:
    """An allocator under test."""

    name: str
    make: Callable[[_core.Watch], _core.Allocator]
    # (shadow, size, pool) -> the bytes that suffice for the request beside what lives: if the card has that much, an
    # out-of-memory error is wrong. None: nothing is promised in that state.
    suffices: Demand
    # Whether a lendable pool lends whole pages, as invariant 8 asks. If not, no pool is marked as lendable.
    lends_pages: bool = True


def rounded(size: int, step: int) -> int:
    return -(-size // step) * step


def page_each(shadow: Shadow, size: int, pool: int) -> int | None:
    """Every block has 2 MiB pages of its own; all that is idle can be given back, whatever its pool."""
    return sum(rounded(block.size, 2 * MIB) for block in shadow.live) + rounded(size, 2 * MIB)


def empty_card(shadow: Shadow, size: int, pool: int) -> int | None:
    """A caching allocator that cuts segments (2 MiB up to 1 MiB, 20 MiB below 10 MiB, else as asked). A block may hold
    back a segment of any size, and a private pool gives none back, so it promises something only without both."""
    if shadow.live or shadow.idle_pools:
        return None
    if size <= MIB:
        return 2 * MIB
    return 20 * MIB if size < 10 * MIB else rounded(size, 2 * MIB)


def empty_card_in_pages(shadow: Shadow, size: int, pool: int) -> int | None:
    """The same with expandable segments: pages of 2 MiB up to 1 MiB, else of 20 MiB."""
    if shadow.live or shadow.idle_pools:
        return None
    return 2 * MIB if size <= MIB else rounded(size, 20 * MIB)


def whole_pages(page: int) -> Demand:
    """Free memory is joined page by page: a live block costs at most a page that is lost at each of its ends."""

    def suffices(shadow: Shadow, size: int, pool: int) -> int | None:
        if shadow.idle_pools - {pool}:
            return None
        return sum(rounded(block.size, 512) + 2 * page for block in shadow.live) + rounded(size, page) + 2 * page

    return suffices


def sizes() -> st.SearchStrategy[int]:
    """1 B to 1 GiB: spread over the orders of magnitude, and at the edges where allocators change their mind."""
    spread = (
        st.integers(0, 30).flatmap(lambda power: st.integers(1 << power, (2 << power) - 1)).map(lambda n: min(n, GIB))
    )
    edges = st.sampled_from([512, MIB, 2 * MIB, 10 * MIB, 20 * MIB, 32 * MIB, 200 * MIB])
    edge = st.builds(lambda base, times, off: max(1, min(base * times + off, GIB)), edges, st.integers(1, 9),
                     st.sampled_from([-512, -1, 0, 1, 512]))  # fmt: skip
    usual = st.sampled_from([3 * MIB, 5 * MIB + 512, 12 * MIB, 40 * MIB, 100, 300 * 1024])
    return st.one_of(usual, edge, spread)


STREAMS = st.sampled_from([0, 0, 0, 1, 1, 2, 7, -3, 1 << 40])


class AllocatorMachine(RuleBasedStateMachine):
    subject: ClassVar[Subject]

    @initialize(
        capacity=st.sampled_from([UNLIMITED, 4 * GIB, GIB, 256 * MIB, 64 * MIB]),
        lag=st.sampled_from([0, 3, 20, -1]),
        seed=st.integers(0, 3),
        every=st.sampled_from([1, 3]),
    )
    def start(self, capacity: int, lag: int, seed: int, every: int) -> None:
        options = _core.ModelOptions()
        options.capacity, options.lag, options.seed = capacity, lag, seed
        self.device = _core.ModelDevice(options)
        self.watch = _core.Watch(self.device, every)
        self.allocator = self.subject.make(self.watch)
        self.shadow = Shadow()
        self.external = self.cap = 0
        self.pools: list[int] = [0, 1, 2]
        self.next_pool = 3
        self.sizes: list[int] = []  # that were asked for
        self.faults: list[tuple[str, int]] = []  # (call, count of it at which the fault comes)

    # --- helpers ------------------------------------------------------------------------------------------------------

    def faulted(self) -> bool:
        """Whether a fault came since this was last asked."""
        before = len(self.faults)
        self.faults = [(call, at) for call, at in self.faults if self.device.ledger.count(call) < at]
        return len(self.faults) < before

    def available(self) -> int:
        card = self.device.total_bytes - self.external
        return min(card, self.cap) if self.cap else card

    def drop(self, block: Block) -> None:
        """free(), which may fail only where the driver did; the block lives on then."""
        try:
            self.allocator.free(block.address)
        except RuntimeError as error:
            if isinstance(error, _core.ValidationError | _core.RuleViolation) or not self.faulted():
                raise
            return
        self.faulted()
        self.shadow.live.remove(block)

    # --- what a caller does -------------------------------------------------------------------------------------------

    @rule(size=sizes(), stream=STREAMS, pool=st.sampled_from([0, 0, 0, 0, 1, 2, 3]))
    def malloc(self, size: int, stream: int, pool: int) -> None:
        pool = self.pools[pool % len(self.pools)]
        self.sizes.append(size)
        held = self.device.ledger.reserved
        try:
            address = self.allocator.malloc(size, stream, pool)
        except _core.OutOfMemory:
            if not self.faulted():
                enough = self.subject.suffices(self.shadow, size, pool)
                assert enough is None or enough > self.available(), (
                    f"out of memory at {size} bytes on stream {stream}, pool {pool}: {enough} of {self.available()} "
                    f"bytes suffice"
                )
            return
        self.faulted()
        assert not self.shadow.overlaps(address, size)
        assert not self.cap or self.device.ledger.reserved <= max(self.cap, held)
        self.shadow.live.append(Block(address, size, stream, pool))
        if pool:
            self.shadow.idle_pools.add(pool)

    @precondition(lambda self: self.sizes)
    @rule(which=st.integers(0, 1 << 20), less=st.sampled_from([0, 0, 1, 512, 4096]), stream=STREAMS)
    def malloc_alike(self, which: int, less: int, stream: int) -> None:
        """A size that was seen before, or a little less: what caches are for."""
        self.malloc(max(1, self.sizes[which % len(self.sizes)] - less), stream, 0)

    @precondition(lambda self: self.sizes)
    @rule(stream=STREAMS)
    def malloc_all_that_is_idle(self, stream: int) -> None:
        """About what the allocator holds and nobody uses: it has to be joined, or taken from elsewhere."""
        idle = self.device.ledger.reserved - self.shadow.requested
        self.malloc(min(max(1, idle - MIB), 4 * GIB), stream, 0)

    @rule(size=sizes(), count=st.integers(2, 6), stream=STREAMS, keep=st.integers(0, 5))
    def burst(self, size: int, count: int, stream: int, keep: int) -> None:
        """Several equal blocks, of which one stays: what makes holes."""
        for _ in range(count):
            self.malloc(size, stream, 0)
            self.device.advance(stream)
        for i, block in enumerate(self.shadow.live[-count:]):
            if i != keep:
                self.drop(block)

    @precondition(lambda self: self.shadow.live)
    @rule(which=st.integers(0, 1 << 20))
    def free(self, which: int) -> None:
        self.drop(self.shadow.live[which % len(self.shadow.live)])

    @precondition(lambda self: len(self.shadow.live) > 3)
    @rule(stride=st.integers(1, 3))
    def free_many(self, stride: int) -> None:
        for block in self.shadow.live[::stride]:
            self.drop(block)

    @precondition(lambda self: self.shadow.live)
    @rule(which=st.integers(0, 1 << 20), others=st.lists(STREAMS, min_size=1, max_size=3), rows=st.integers(0, 4))
    def free_while_others_use_it(self, which: int, others: list[int], rows: int) -> None:
        block = self.shadow.live[which % len(self.shadow.live)]
        for stream in others:
            self.device.work(stream)
            self.allocator.record_stream(block.address, stream)
        self.drop(block)
        for _ in range(rows):
            self.device.advance(block.stream)

    @rule(address=st.sampled_from([0, 512, 1 << 63]), stream=STREAMS)
    def stray_addresses(self, address: int, stream: int) -> None:
        self.allocator.record_stream(address, stream)
        try:
            self.allocator.free(address)
        except ValueError:
            return
        raise AssertionError("a stray address was freed")

    @precondition(lambda self: self.shadow.live)
    @rule(which=st.integers(0, 1 << 20), stream=STREAMS)
    def record_stream(self, which: int, stream: int) -> None:
        block = self.shadow.live[which % len(self.shadow.live)]
        self.device.work(stream)
        self.allocator.record_stream(block.address, stream)

    @precondition(lambda self: len(self.pools) < 4)
    @rule()
    def new_pool(self) -> None:
        self.pools.append(self.next_pool)
        self.next_pool += 1

    @precondition(lambda self: len(self.pools) > 1)
    @rule(which=st.integers(0, 3))
    def release_pool(self, which: int) -> None:
        pool = self.pools.pop(1 + which % (len(self.pools) - 1))
        self.allocator.release_pool(pool)
        self.shadow.idle_pools.discard(pool)

    @precondition(lambda self: len(self.pools) > 1 and self.subject.lends_pages)
    @rule(which=st.integers(0, 3), lendable=st.booleans())
    def lend(self, which: int, lendable: bool) -> None:
        self.allocator.set_pool_lendable(self.pools[1 + which % (len(self.pools) - 1)], lendable)

    @rule()
    def empty_cache(self) -> None:
        held = self.device.ledger.reserved
        self.allocator.empty_cache()
        self.faulted()
        assert self.device.ledger.reserved <= held

    @rule(size=st.one_of(sizes(), st.just(UNLIMITED)))
    def reclaim(self, size: int) -> None:
        held = self.device.ledger.reserved
        given = self.allocator.reclaim(size)
        self.faulted()
        assert held - self.device.ledger.reserved == given

    @rule(percent=st.sampled_from([0, 0, 50, 100, 150]))
    def set_memory_cap(self, percent: int) -> None:
        self.cap = rounded((self.device.ledger.reserved or 100 * MIB) * percent // 100, 2 * MIB)
        self.allocator.set_memory_cap(self.cap)

    # --- what happens around ------------------------------------------------------------------------------------------

    @rule(rows=st.integers(1, 30), stream=STREAMS)
    def time_passes(self, rows: int, stream: int) -> None:
        for _ in range(rows):
            self.device.advance(stream)

    @rule()
    def all_work_done(self) -> None:
        self.device.finish_all()

    @rule(size=sizes())
    def another_owner_takes(self, size: int) -> None:
        if self.device.external_take(size):
            self.external += size

    @precondition(lambda self: self.external)
    @rule(percent=st.sampled_from([100, 100, 50]))
    def another_owner_gives(self, percent: int) -> None:
        size = self.external * percent // 100
        self.device.external_give(size)
        self.external -= size

    @precondition(lambda self: len(self.faults) < 3)
    @rule(call=st.sampled_from(CALLS), k=st.integers(1, 6), memory=st.booleans())
    def fault(self, call: str, k: int, memory: bool) -> None:
        self.device.inject(call, k, memory)
        self.faults.append((call, self.device.ledger.count(call) + k))

    @precondition(lambda self: self.faults)
    @rule()
    def heal(self) -> None:
        self.device.heal()
        self.faults.clear()

    @rule()
    def compare_all(self) -> None:
        self.watch.check_all()

    # --- what must be true always -------------------------------------------------------------------------------------

    @invariant()
    def statistics_agree(self) -> None:
        statistics = self.allocator.statistics()
        live, requested = len(self.shadow.live), self.shadow.requested
        assert statistics["allocation.all.current"] == live == self.watch.live_blocks
        assert statistics["reserved_bytes.all.current"] == self.device.ledger.reserved == self.watch.held
        assert self.watch.live_requested == requested <= statistics["requested_bytes.all.current"]
        assert requested <= statistics["allocated_bytes.all.current"] <= self.device.ledger.reserved
        for name in ("allocation", "active", "allocated_bytes", "active_bytes", "requested_bytes", "reserved_bytes"):
            figures = {key: statistics[f"{name}.all.{key}"] for key in ("current", "peak", "allocated", "freed")}
            assert figures["current"] == figures["allocated"] - figures["freed"]
            assert 0 <= figures["current"] <= figures["peak"] <= figures["allocated"]
            parts = [statistics[f"{name}.{kind}.current"] for kind in ("small_pool", "large_pool")]
            assert sum(parts) == figures["current"]

    def teardown(self) -> None:
        if not hasattr(self, "device"):
            return
        self.device.heal()
        self.faults.clear()
        self.watch.check_all()
        for pool in self.pools[1:]:
            self.allocator.release_pool(pool)
        half = len(self.shadow.live) // 2
        for block in self.shadow.live[half:]:
            self.allocator.free(block.address)
        if half == 0:
            self.device.finish_all()
            self.allocator.empty_cache()
            assert self.device.ledger.reserved == 0
        # A program may end while the driver does: what is freed now makes no noise.
        self.device.shut_down()
        for block in self.shadow.live[:half]:
            self.allocator.free(block.address)
        self.allocator.empty_cache()


def machine_of(subject: Subject) -> type[AllocatorMachine]:
    """The machine for this allocator."""
    return type(f"MachineOf_{subject.name}", (AllocatorMachine,), {"subject": subject})


def run(subject: Subject, examples: int = 80, steps: int = 60, shrink: bool = True) -> None:
    """Runs the machine, the same way each time; MOVIE_EXAMPLES=n runs n examples that differ each time.

    Raises what the machine found, with the steps that lead to it."""
    chosen = int(os.environ.get("MOVIE_EXAMPLES", "0"))
    run_state_machine_as_test(
        machine_of(subject),
        settings=settings(
            max_examples=chosen or examples,
            stateful_step_count=steps,
            derandomize=not chosen,
            database=None,
            deadline=None,
            phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
