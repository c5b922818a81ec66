"""combine(): the dynamic programme against brute force, and the rival choices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from movie import _core

MOST_PARTS = 10
INSTANCES = 10_000
MEMBERS = ((np.arange(1, 1 << MOST_PARTS)[:, None] >> np.arange(MOST_PARTS)) & 1).astype(bool)

Part = tuple[int, int, int]  # pages, wait, breaks


def brute_force(parts: list[Part], need: int) -> tuple[int, int, int, int] | None:
    """The best (longest wait, pieces, remnant, breaks) over all subsets of which at most one member is cut."""
    members = MEMBERS[: (1 << len(parts)) - 1, : len(parts)]
    pages, waits, breaks = np.array(parts, dtype=np.int64).T
    remnant = members @ pages - need
    largest = np.where(members, pages, 0).max(axis=1)
    possible = (remnant >= 0) & (remnant < largest)  # one member covers the cut
    if not possible.any():
        return None
    costs = np.stack([np.where(members, waits, 0).max(axis=1), members.sum(axis=1), remnant, members @ breaks], axis=1)
    return tuple(int(figure) for figure in min(map(tuple, costs[possible])))  # type: ignore[return-value]


def random_instance(random: np.random.Generator) -> tuple[list[Part], int]:
    count = int(random.integers(1, MOST_PARTS + 1))
    distinct = random.integers(1, int(random.choice([8, 40, 400])), size=int(random.integers(1, count + 1)))
    pages = random.choice(distinct, size=count)
    waits = random.choice([0, 0, 0, 1, 7, 900], size=count)
    breaks = random.integers(0, 4, size=count)
    parts = [(int(p), int(w), int(b)) for p, w, b in zip(pages, waits, breaks, strict=True)]
    return parts, int(random.integers(1, int(pages.sum() * 1.1) + 2))


def test_the_dynamic_programme_equals_brute_force() -> None:
    random = np.random.default_rng(2025)
    short = 0
    for _ in range(INSTANCES):
        parts, need = random_instance(random)
        choice = _core.combine(parts, need)
        best = brute_force(parts, need)
        if best is None:
            assert choice is None
            short += 1
        else:
            assert choice is not None
            assert _core.choice_cost(parts, choice) == best, (parts, need, choice)
    assert 0 < short < INSTANCES // 2  # both outcomes were seen


@given(
    st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 3), st.integers(0, 2)), max_size=300),
    st.integers(1, 60_000),
    st.sampled_from(["dynamic", "greedy", "best-fit-decreasing"]),
)
def test_every_choice_holds_the_request(parts: list[Part], need: int, combiner: str) -> None:
    choice = _core.combine(parts, need, combiner)
    if sum(pages for pages, _, _ in parts) < need:
        assert choice is None
        return
    assert choice is not None
    assert sum(pages for _, pages in choice) == need
    indices = [index for index, _ in choice]
    assert len(set(indices)) == len(indices)
    assert all(0 < pages <= parts[index][0] for index, pages in choice)
    assert all(pages == parts[index][0] for index, pages in choice[:-1])  # only the last is cut


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(0, 3), st.just(0)), min_size=1, max_size=40), st.data())
def test_the_dynamic_programme_is_never_worse_than_its_rivals(parts: list[Part], data: st.DataObject) -> None:
    need = data.draw(st.integers(1, sum(pages for pages, _, _ in parts)))
    best, *rivals = (
        _core.choice_cost(parts, _core.combine(parts, need, combiner) or [])
        for combiner in ("dynamic", "greedy", "best-fit-decreasing")
    )
    assert all(best <= rival for rival in rivals)


def test_an_exact_combination_is_found_where_greedy_leaves_a_remnant() -> None:
    parts = [(90, 0, 0), (60, 0, 0), (40, 0, 0)]
    assert _core.choice_cost(parts, _core.combine(parts, 100, "greedy") or [])[2] == 50
    assert _core.choice_cost(parts, _core.combine(parts, 100) or [])[2] == 0


def test_an_unknown_combiner_is_named() -> None:
    with pytest.raises(ValueError, match=r"oracle.*known: dynamic"):
        _core.combine([(1, 0, 0)], 1, "oracle")
