"""How large the pages are that growth obtains: small where the card may get full, larger once what is left is spare."""

import pytest

from movie import _core

MIB = 1 << 20
GIB = 1 << 30


class Run:
    """`movie` on a model device with a card of so many bytes."""

    def __init__(self, card: int) -> None:
        model = _core.ModelOptions()
        model.capacity = card
        self.device = _core.ModelDevice(model)
        self.allocator = _core.make_allocator(self.device, "movie", {})

    def pages_for(self, size: int, pool: int = 0) -> int:
        """How many pages growth takes for a request that nothing free serves."""
        before = int(self.device.ledger.count("create"))
        self.allocator.malloc(size, 0, pool)
        return int(self.device.ledger.count("create")) - before

    def turn_over(self, size: int, times: int) -> None:
        for _ in range(times):
            self.allocator.free(self.allocator.malloc(size, 0, 0))


@pytest.mark.parametrize(
    ("card", "page"), [(12 * GIB, 2), (24 * GIB, 2), (40 * GIB, 4), (80 * GIB, 8), (192 * GIB, 16), (1 << 40, 32)]
)
def test_larger_cards_have_larger_pages(card: int, page: int) -> None:
    assert Run(card).pages_for(512 * MIB) == 512 // page


def test_pages_get_smaller_as_the_card_fills() -> None:
    run = Run(80 * GIB)
    pages = [run.pages_for(4 * GIB) for _ in range(19)]
    assert pages[0] == 512
    assert pages == sorted(pages)
    assert pages[-1] == 2048


def test_a_large_request_has_larger_pages_once_memory_was_used_many_times_over() -> None:
    run = Run(24 * GIB)
    run.turn_over(GIB, 15)
    assert run.pages_for(2 * GIB) == 512  # 2 MiB each, beside the first GiB
    run = Run(24 * GIB)
    run.turn_over(GIB, 16)
    assert run.pages_for(2 * GIB) == 1024 // 32  # it grows by what the first GiB lacks


def test_a_request_is_cut_into_some_pages_at_least() -> None:
    run = Run(24 * GIB)
    run.turn_over(16 * MIB, 40)
    assert run.pages_for(48 * MIB) == 4  # 32 MiB more: pages of no more than a quarter of them
    run = Run(24 * GIB)
    run.turn_over(16 * MIB, 40)
    assert run.pages_for(144 * MIB) == 16  # and of a 2048th of the card, where that is less
    run = Run(24 * GIB)
    run.turn_over(16 * MIB, 40)
    assert run.pages_for(528 * MIB) == 16  # but for a sixteenth of the request: the card has room


@pytest.mark.parametrize(("left", "page"), [(64 * MIB, 2), (128 * MIB, 4), (256 * MIB, 8), (512 * MIB, 8)])
def test_late_growth_is_by_few_pages_also_where_little_is_left(left: int, page: int) -> None:
    run = Run(24 * GIB)
    blocks: list[int] = []
    for _ in range(17):
        for block in blocks:
            run.allocator.free(block)
        blocks = [run.allocator.malloc(size, 0, 0) for size in [GIB] * 23 + [GIB - left]]
    assert run.pages_for(left) == left // MIB // page


def test_nothing_is_spare_on_a_card_that_is_nearly_full() -> None:
    run = Run(4 * GIB + 320 * MIB)
    run.turn_over(4 * GIB, 20)
    run.allocator.malloc(4 * GIB, 0, 0)
    assert run.pages_for(256 * MIB) == 128


def test_a_pool_of_its_own_uses_its_holes_also_where_pages_are_small() -> None:
    """What it wastes no other pool can use."""
    run = Run(24 * GIB)
    blocks = [run.allocator.malloc(64 * MIB, 0, 7) for _ in range(32)]
    for block in blocks[::2]:
        run.allocator.free(block)
    assert run.pages_for(128 * MIB, pool=7) == 0
    assert run.allocator.views()["created"] == 1
    run = Run(24 * GIB)
    blocks = [run.allocator.malloc(64 * MIB, 0, 0) for _ in range(32)]
    for block in blocks[::2]:
        run.allocator.free(block)
    assert run.pages_for(128 * MIB) > 0
