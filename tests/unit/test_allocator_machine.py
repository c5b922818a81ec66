"""Every allocator of the catalogue against the state machine, and the machine against allocators with planted flaws."""

from __future__ import annotations

import pytest
from allocator_machine import MIB, Demand, Subject, empty_card, empty_card_in_pages, page_each, run, whole_pages

from movie import _core

# What each allocator promises; one that is not named here is promised nothing, but obeys everything else.
PROMISES: dict[str, Demand] = {
    "native": empty_card,
    "expandable": empty_card_in_pages,
    "gmlake": empty_card,
    "movie": whole_pages(32 * MIB),  # its largest page, as on a card with much room
    "movie-lean": whole_pages(2 * MIB),
}
# PyTorch's allocators lend any free block of a marked pool, though blocks of that pool live beside it in the same page:
# an invariant that is ours alone.
LEND_PIECES = ("native", "expandable")
VARIANTS: list[tuple[str, dict[str, str]]] = [
    *((entry.name, {}) for entry in _core.catalogue()),
    ("native", {"tie": "segment", "max_split_size": str(32 * MIB)}),
    ("native", {"tie": "block"}),
    ("expandable", {"max_split_size": str(32 * MIB), "large_segment_size": str(10 * MIB), "rerun_search": "1"}),
    ("gmlake", {"frag": str(8 * MIB), "reuse": "2", "auto_gc": str(256 * MIB)}),
    ("movie", {"page": str(2 * MIB)}),
    ("movie-lean", {"largest_page": str(8 * MIB)}),
]


def catalogue_subject(name: str, options: dict[str, str]) -> Subject:
    demand = PROMISES.get(name, lambda shadow, size, pool: None)
    if name.startswith("movie") and options:
        demand = whole_pages(max(int(size) for option, size in options.items() if option.endswith("page")))
    return Subject(name, lambda watch: watch.make(name, options), demand, lends_pages=name not in LEND_PIECES)


def reference(flaw: str = "") -> Subject:
    return Subject("reference", lambda watch: _core.testing.watch_reference(watch, flaw)[0], page_each)


@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=lambda value: value if isinstance(value, str) else None)
def test_an_allocator_of_the_catalogue(name: str, options: dict[str, str]) -> None:
    run(catalogue_subject(name, options))


def test_the_reference_allocator() -> None:
    run(reference())


# Flaws that show without a capture and without pinned memory, which an Allocator is not told of.
VISIBLE = [
    name
    for name, _, _ in _core.testing.flaws()
    if name not in ("waits-while-capturing", "releases-pinned", "takes-stray-frees")
]


# Examples until a flaw is found: dozens do as a rule, and it ends with the first. They are not the same in every run,
# since hypothesis also draws from constants of whatever modules are loaded.
SEARCH = 3000


@pytest.mark.parametrize("flaw", VISIBLE)
def test_the_machine_finds_a_flaw(flaw: str) -> None:
    with pytest.raises(_core.ValidationError, match="invariant"):
        run(reference(flaw), examples=SEARCH, shrink=False)


def test_the_machine_finds_a_stray_free() -> None:
    with pytest.raises(_core.ValidationError, match="no live block begins there"):
        run(reference("takes-stray-frees"), examples=SEARCH, shrink=False)


def test_the_machine_finds_a_needless_out_of_memory() -> None:
    wishful = Subject("reference", reference().make, lambda shadow, size, pool: shadow.requested + size)
    with pytest.raises(AssertionError, match="suffice"):
        run(wishful, examples=SEARCH, shrink=False)
