"""PyTorch's allocators on the text cases against the independent model whose figures stand in their headers."""

import re
from dataclasses import replace as changed
from pathlib import Path

import pytest

from movie.evaluate.replay import ReplayResult, replay
from movie.trace import read_trace

MIB = 1 << 20


def outcome(result: ReplayResult) -> str:
    """As the headers say it: MiB reserved at most, and whether an allocation failed."""
    return f"{'' if result.completed else 'fails:'}{result.peak_reserved // MIB}"


def told(text: str) -> tuple[bool, int]:
    """Whether it completed, and MiB reserved at most."""
    return not text.startswith("fails:"), int(text.removeprefix("fails:"))


@pytest.mark.parametrize("allocator", ["native", "expandable"])
def test_peaks_are_those_of_the_headers(data_dir: Path, allocator: str):
    cases = sorted((data_dir / "cases").glob("*.case"))
    assert len(cases) == 28
    for path in cases:
        [trace] = read_trace(path)
        figures = re.fullmatch(r"(\S+) with capacity, (\S+) without", trace.header[f"model_{allocator}_mib"])
        assert figures, path.name
        # The model behind the headers has no clock: pending frees end at `sync` rows or in a retry. Its second figure
        # is for no capacity and no split limit.
        arguments = {"lag": None, "reclaim": False}
        limited = replay(trace, allocator, memory=trace.capacity, **arguments)
        ample = replay(changed(trace, split_limit=None), allocator, **arguments)
        if allocator == "expandable" and limited.retries:
            # PyTorch creates pages until the card is full before it finds that they are too few, and gives them back.
            # The model behind the headers looks first.
            completed, peak = told(figures[1])
            assert (path.name, limited.completed) == (path.name, completed)
            assert peak <= limited.peak_reserved // MIB <= trace.capacity // MIB
        else:
            assert (path.name, outcome(limited)) == (path.name, figures[1])
        assert (path.name, outcome(ample)) == (path.name, figures[2])


@pytest.mark.parametrize("lendable", [(), (1,)])
def test_a_marked_pool_lends(data_dir, lendable):
    [trace] = read_trace(data_dir / "cases" / "lend_from_a_marked_pool.case")
    assert replay(trace, "native", memory=trace.capacity, lendable=lendable).completed is bool(lendable)


@pytest.mark.parametrize("reclaim", [True, False])
def test_another_owner_gets_idle_memory_if_it_asks(data_dir, reclaim):
    [trace] = read_trace(data_dir / "cases" / "other_owner_needs_idle_memory.case")
    assert replay(trace, "native", memory=trace.capacity, reclaim=reclaim).completed is reclaim
