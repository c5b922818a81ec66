"""Snapshots and histories under MOVie: true, in PyTorch's format, and read by its viewer and by MOVie's own reader."""

import itertools
import pickle
import subprocess
import sys

import numpy as np
import pytest
from torch_child import printed, run_under_movie

from movie.trace import read_trace

# Blocks in arenas, in slabs and in views, some of them freed, one that another stream still uses.
_PROGRAM = """
import json, sys
MIB = 1 << 20

def tensor(bytes_):
    return torch.empty(bytes_, dtype=torch.uint8, device="cuda")

torch.cuda.memory._record_memory_history(max_entries=100000{recording})
held = [tensor(10 * MIB) for _ in range(12)]
small = [tensor(700 + i) for i in range(40)]
del held[::2], small[::3]                      # holes that do not touch each other
view = tensor(30 * MIB)                        # fits in none of them
side = torch.cuda.Stream()
busy = tensor(5000)
with torch.cuda.stream(side):
    busy.add_(1)
busy.record_stream(side)
del busy
first = tensor(25 * MIB)
del first
assert movie._core.torch.views(0)["created"] > 0
"""
_LEAN = {"MOVIE_POLICY": "lean", "lag": -1}


@pytest.fixture(scope="module")
def dumped(tmp_path_factory):
    """A snapshot as torch writes it, and what torch's counters said at that moment."""
    path = tmp_path_factory.mktemp("snapshot") / "snapshot.pickle"
    said = printed(
        _PROGRAM.replace("{recording}", "")
        + f"""
torch.cuda.memory._dump_snapshot({str(path)!r})
print(json.dumps([torch.cuda.memory_stats(), movie._core.torch.account(0).reserved]))
""",
        **_LEAN,
    )
    return path, said


def _load(path):
    with open(path, "rb") as file:
        return pickle.load(file)


def test_each_physical_byte_is_in_one_segment(dumped):
    path, (stats, ledger) = dumped
    segments = _load(path)["segments"]
    assert sum(segment["total_size"] for segment in segments) == stats["reserved_bytes.all.current"] == ledger
    for segment in segments:
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at
            at += block["size"]
        assert at == segment["address"] + segment["total_size"]
    ranges = sorted((segment["address"], segment["address"] + segment["total_size"]) for segment in segments)
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(ranges))


def test_blocks_add_up_to_the_counters(dumped):
    path, (stats, _) = dumped
    segments = _load(path)["segments"]
    for key, counter in {
        "allocated_size": "allocated_bytes.all.current",
        "active_size": "active_bytes.all.current",
        "requested_size": "requested_bytes.all.current",
    }.items():
        assert sum(segment[key] for segment in segments) == stats[counter], key
    states = {block["state"] for segment in segments for block in segment["blocks"]}
    assert states == {"active_allocated", "active_pending_free", "inactive"}


def test_undoing_the_trace_leads_back_to_nothing(dumped):
    """What is mapped and what is live, taken back event by event, as viewers do."""
    path, _ = dumped
    snapshot = _load(path)
    mapped = {(segment["address"], segment["address"] + segment["total_size"]) for segment in snapshot["segments"]}
    live = {
        block["address"]
        for segment in snapshot["segments"]
        for block in segment["blocks"]
        if block["state"].startswith("active")
    }
    pages = _units(mapped)
    for event in reversed(snapshot["device_traces"][0]):
        address, size = event["addr"], event["size"]
        if event["action"] == "segment_map":
            units = _units({(address, address + size)})
            assert units <= pages, "what was mapped is mapped"
            pages -= units
        elif event["action"] == "segment_unmap":
            units = _units({(address, address + size)})
            assert not units & pages, "what was unmapped is not mapped"
            pages |= units
        elif event["action"] == "alloc":
            assert address in live
            assert address // 512 in pages
            live.remove(address)
        elif event["action"] == "free_completed":
            assert address not in live
            assert address // 512 in pages
            live.add(address)
        elif event["action"] == "free_requested":
            assert address in live
    assert not live
    assert not pages


def _units(ranges):
    """Ranges of addresses as sets of units of 512 bytes."""
    units: set[int] = set()
    for begin, end in ranges:
        units.update(range(begin // 512, end // 512))
    return units


def test_events_have_python_stacks_and_times(dumped):
    path, _ = dumped
    events = _load(path)["device_traces"][0]
    allocs = [event for event in events if event["action"] == "alloc"]
    assert all(event["frames"][0]["name"].endswith("tensor") for event in allocs)
    assert all(event["frames"][-1]["filename"] == "<string>" for event in allocs)
    times = [event["time_us"] for event in events]
    assert times == sorted(times)
    assert times[0] > 1_700_000_000_000_000


@pytest.mark.parametrize("view", ["trace", "trace_plot", "segment_plot"])
def test_torchs_own_viewer_reads_it(dumped, tmp_path, view):
    path, _ = dumped
    arguments = [str(path)] if view == "trace" else [str(path), "-o", str(tmp_path / "out.html")]
    command = [sys.executable, "-m", "torch.cuda._memory_viz", view, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    if view == "trace":
        assert "30.0MiB" in result.stdout
    else:
        assert (tmp_path / "out.html").stat().st_size > 1000


def test_movies_reader_finds_the_same_requests(dumped):
    path, (stats, _) = dumped
    trace = read_trace(path)[0]
    assert trace.complete
    assert trace.allocations == stats["allocation.all.allocated"]
    assert np.array_equal(np.sort(trace.bytes[trace.action == 0])[-3:], [10 << 20, 25 << 20, 30 << 20])


def test_a_history_is_a_ring_and_can_be_stopped():
    said = printed(
        """
        import json
        torch.cuda.memory._record_memory_history(max_entries=10)
        for _ in range(20):
            torch.empty(1000, device="cuda")
        counts = [len(torch.cuda.memory._snapshot()["device_traces"][0])]
        torch.cuda.memory._record_memory_history(enabled=None)
        torch.empty(1000, device="cuda")
        counts.append(len(torch.cuda.memory._snapshot()["device_traces"][0]))
        print(json.dumps(counts))
        """
    )
    assert said == [10, 0]


@pytest.mark.parametrize(
    ("arguments", "allocs", "frees"),
    [("context=None", False, False), ("context='alloc'", True, False), ("context='all'", True, True)],
)
def test_contexts_are_those_asked_for(arguments, allocs, frees):
    """A free has the stack of its own, else that of its allocation."""
    said = printed(
        f"""
        import json
        torch.cuda.memory._record_memory_history({arguments})
        def make():
            return torch.empty(2 << 20, device="cuda")
        def drop():
            held.clear()
        held = [make()]
        drop()
        events = {{event["action"]: event for event in torch.cuda.memory._snapshot()["device_traces"][0]}}
        def first(action):
            return events[action].get("frames", [{{"name": None}}])[0]["name"]
        print(json.dumps([first("alloc"), first("free_requested")]))
        """
    )
    assert said == ["make" if allocs else None, "drop" if frees else "make" if allocs else None]


def test_a_snapshot_of_what_is_left_out():
    said = printed(
        """
        import json
        torch.cuda.memory._record_memory_history(skip_actions=["free_requested", "segment_map"])
        torch.empty(1000, device="cuda")
        print(json.dumps([event["action"] for event in torch.cuda.memory._snapshot()["device_traces"][0]]))
        """
    )
    assert said == ["alloc", "free_completed"]


def test_what_cannot_be_recorded_is_refused():
    result = run_under_movie("torch.cuda.memory._record_memory_history(context='everything')")
    assert result.returncode == 1
    assert "RuntimeError" in result.stderr
