"""Real training programs on a phantom: MOVie beside PyTorch's allocators, a replay of each, and the limits it keeps."""

import pytest
from torch_build import require_cuda_torch

from movie.evaluate.live import cost
from movie.evaluate.live.__main__ import TABLE, missed_limits, smallest_card, table_row
from movie.evaluate.live.cases import AUTO, CASES, LEAN, WAYS, Case
from movie.evaluate.live.measure import measure
from movie.evaluate.live.same import both, same

pytestmark = pytest.mark.slow


def _small(lengths):
    arguments = ("--model", "opt-125m", "--strategy", "R", "--lengths", lengths, "--batch", "32", "--iterations", "6")
    return Case(f"opt-125m R {lengths}", "movie.workloads.causal", arguments)


@pytest.fixture(autouse=True)
def torch_is_there():
    require_cuda_torch("transformers")


@pytest.mark.parametrize("lengths", ["fix", "var"])
def test_movie_keeps_its_limits_where_native_does_not(lengths):
    case = _small(lengths)
    figures = {way.name: measure(case, way) for way in WAYS}
    on_smallest = measure(case, AUTO, smallest_card(figures[AUTO.name]["requested"]))
    # So small a model makes too few large requests for a repetition to be trusted after three steps, and a few pages of
    # slack are more than 0.5 % of it: `python -m movie.evaluate.live` holds the large ones to these limits.
    large = ("movie-lean uses less", "movie-lean calls the driver")
    missed = [text for text in missed_limits(case, figures, on_smallest) if not text.startswith(large)]
    assert missed == []
    lean = figures[LEAN.name]
    assert lean["reserved"] <= 1.005 * lean["requested"] + (32 << 20)
    assert figures["native"]["reserved"] > lean["reserved"]


@pytest.mark.parametrize("way", [AUTO, LEAN])
def test_a_replay_does_what_the_program_did(way):
    live, again = both(_small("var"), way)
    assert same(live, again), (live, again)
    if way is LEAN:
        assert live["views"]["created"] > 0


# ZeRO-3 empties the cache on its way, after which the order of addresses is another.
@pytest.mark.parametrize("name", ["fsdp1", "zero3"])
@pytest.mark.parametrize("way", [AUTO, LEAN])
def test_a_replay_does_what_a_program_of_several_streams_did(way, name):
    if name == "zero3":
        require_cuda_torch("deepspeed")
    [case] = [case for case in CASES if case.name.startswith(name)]
    live, again = both(case, way)
    assert live["waits"] > 0
    assert same(live, again), (live, again)


def test_a_miss_would_be_told():
    good = {
        "requested": 995,
        "reserved": 1000,
        "reserved_by_the_card": 1000,
        "completed": True,
        "retries": 0,
        "violations": 0,
        "calls_by_step": [9, 9, 9, 0, 0],
    }
    case = _small("fix")
    figures = {way.name: dict(good) for way in WAYS}
    assert missed_limits(case, figures, good) == []
    for change in (
        {"requested": 994},
        {"reserved_by_the_card": 1001},
        {"violations": 1},
        {"calls_by_step": [9, 9, 9, 0, 1]},
    ):
        assert missed_limits(case, {**figures, LEAN.name: {**good, **change}}, good), change
    assert missed_limits(case, figures, {**good, "completed": False})
    assert missed_limits(case, figures, {**good, "retries": 1})


def test_the_row_of_a_program():
    said = {
        "requested": 3 << 29,
        "reserved": 7 << 28,
        "completed": True,
        "retries": 0,
        "calls_by_step": [9, 9, 9, 1000, 1],
    }
    figures = {way.name: said for way in WAYS}
    row = table_row(_small("fix"), figures, 2 << 30, said)
    assert row == "| opt-125m R fix | 1.50 | 1.75 | 1.75 | 1.75 | 1.75 | 85.71% | 2.00 | 1,001, 1,001 |"
    assert row.count("|") == TABLE[0].count("|") == TABLE[1].count("|")
    assert "| no |" in table_row(_small("fix"), figures, 2 << 30, {**said, "completed": False})


def test_the_upper_bound_of_a_median():
    assert cost.upper_bound([float(value) for value in range(1, 21)]) == 15.0  # the 6th largest of 20
    assert cost.upper_bound([1.0, 2.0]) == 2.0
