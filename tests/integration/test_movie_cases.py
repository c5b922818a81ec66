"""MOVie on the text cases: each ends as its header says that a good allocator should."""

import pytest
from recorded_files import names

from movie.evaluate.cases import ALLOCATORS, LAGS, broken_promises, main, promise_of
from movie.trace import read_trace

MIB = 1 << 20
CASES = names("cases/*.case")


@pytest.mark.parametrize("lag", LAGS)
@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize("name", CASES)
def test_keeps_the_promise(data_dir, name, allocator, lag):
    [trace] = read_trace(data_dir / name)
    assert broken_promises(trace, allocator, lag) == []


def test_every_condition_of_the_headers_is_understood(data_dir):
    promises = {name: promise_of(read_trace(data_dir / name)[0]) for name in CASES}
    assert len(promises) == 28
    kinds = ("alternative_capacity", "needs_lending", "slack", "most_at_external")
    assert {kind: [name for name, promise in promises.items() if getattr(promise, kind)] for kind in kinds} == {
        "alternative_capacity": ["cases/allgather_buffers_pending_on_comm_stream.case"],
        "needs_lending": ["cases/lend_from_a_marked_pool.case"],
        "slack": ["cases/conv_pool_epochs_with_empty_cache.case"],
        "most_at_external": ["cases/other_owner_needs_idle_memory.case"],
    }


def test_native_breaks_promises(data_dir):
    """The check can fail: where PyTorch's allocator is known to, it says so."""
    for name, what in {
        "holes_around_one_live_block": "reserves 30.0 MiB more than is good",
        "comb_5gib_then_30gib": "fails on the card of the case",
        "stash_restore_cycle": "more than is good",
        "conv_pool_epochs_with_empty_cache": "more than is good",
    }.items():
        [trace] = read_trace(data_dir / "cases" / f"{name}.case")
        broken = broken_promises(trace, "native", 0)
        assert any(what in line for line in broken), (name, broken)


def _case(tmp_path, *header: str):
    path = tmp_path / "a.case"
    path.write_text("\n".join(["# gpu-alloc-case 1", *header, "capacity none", "alloc a 4194304 0 0", "free a", ""]))
    return path


def test_a_header_that_promises_nothing_is_refused(tmp_path, capsys):
    for header in (
        ["# title: no promise"],
        ["# good_reserved_max_mib: few"],
        ["# good_reserved_max_mib: 4", "# without_lending: perhaps"],
        ["# good_reserved_max_mib: 4", "# alternative_capacity_mib: 12"],
    ):
        assert main([str(_case(tmp_path, *header))]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 4


def test_the_command_tells_what_is_broken(tmp_path, capsys):
    assert main([str(_case(tmp_path, "# good_reserved_max_mib: 4"))]) == 0
    assert main([str(_case(tmp_path, "# good_reserved_max_mib: 2"))]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "6 runs of 1 cases: 6 break what a good allocator keeps"
    assert "reserves 2.0 MiB more than is good" in lines[-2]
