"""`native` on the text cases against the independent model whose figures stand in their headers."""

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


def test_peaks_are_those_of_the_headers(data_dir: Path):
    cases = sorted((data_dir / "cases").glob("*.case"))
    assert len(cases) == 28
    for path in cases:
        [trace] = read_trace(path)
        figures = re.fullmatch(r"(\S+) with capacity, (\S+) without", trace.header["model_native_mib"])
        assert figures, path.name
        # The model behind the headers has no clock: pending frees end at `sync` rows or in a retry. Its second figure
        # is for no capacity and no split limit.
        arguments = {"lag": None, "reclaim": False}
        limited = replay(trace, "native", memory=trace.capacity, **arguments)
        ample = replay(changed(trace, split_limit=None), "native", **arguments)
        assert (path.name, outcome(limited), outcome(ample)) == (path.name, *figures.groups())


@pytest.mark.parametrize("lendable", [(), (1,)])
def test_a_marked_pool_lends(data_dir, lendable):
    [trace] = read_trace(data_dir / "cases" / "lend_from_a_marked_pool.case")
    assert replay(trace, "native", memory=trace.capacity, lendable=lendable).completed is bool(lendable)


@pytest.mark.parametrize("reclaim", [True, False])
def test_another_owner_gets_idle_memory_if_it_asks(data_dir, reclaim):
    [trace] = read_trace(data_dir / "cases" / "other_owner_needs_idle_memory.case")
    assert replay(trace, "native", memory=trace.capacity, reclaim=reclaim).completed is reclaim
