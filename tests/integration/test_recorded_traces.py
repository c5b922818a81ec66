"""The readers on real files: their figures are those that the folder of recorded traces gives for them."""

import csv
import gzip
import pickle
import subprocess
import sys

import numpy as np
import pytest

from movie.trace import Action, read_trace, write_trace
from movie.trace.model import SEGMENT_ACTIONS, same

GIB = 1 << 30
ADDED = (Action.MARK, Action.EMPTY_CACHE)  # rows that are not events of the snapshot


def index_of(folder, kinds=None):
    with (folder / "INDEX.tsv").open() as file:
        return [row for row in csv.DictReader(file, delimiter="\t") if kinds is None or row["class"] in kinds]


def live_bytes(trace, until, step=1):
    """Requested bytes, each rounded up to a step, alive before the first row and after each; `until` ends a block."""
    size, start = (-(-column // step) * step for column in (trace.bytes, trace.start.bytes))
    change = np.where(trace.action == Action.ALLOC, size, np.where(trace.action == until, -size, 0))
    return int(start.sum()) + np.concatenate([[0], np.cumsum(change)])


def reserved_bytes(trace):
    grows = np.isin(trace.action, (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP))
    shrinks = np.isin(trace.action, (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP))
    change = np.where(grows, trace.bytes, np.where(shrinks, -trace.bytes, 0))
    return trace.start_reserved + np.concatenate([[0], np.cumsum(change)])


def test_snapshots(data_dir):
    rows = index_of(data_dir, {"snapshot"})
    assert len(rows) >= 26
    for row in rows:
        [trace] = read_trace(data_dir / row["path"], device=int(row["device"]))
        found = {
            "events": int(np.count_nonzero(~np.isin(trace.action, ADDED))),
            "allocs": trace.allocations,
            "streams": len(np.unique(trace.stream[trace.action == Action.ALLOC])),
            "start_live_blocks": len(trace.start),
            "start_live_bytes": int(trace.start.bytes.sum()),
            "start_reserved_bytes": trace.start_reserved,
            "peak_live_requested_bytes": int(live_bytes(trace, Action.FREE_REQUESTED).max()),
            "peak_live_512_bytes": int(live_bytes(trace, Action.FREE_REQUESTED, step=512).max()),
            "peak_reserved_bytes": int(reserved_bytes(trace).max()),
            "end_reserved_bytes": trace.end_reserved,
            "pools": len(trace.pools),
        }
        assert found == {name: int(row[name]) for name in found}, row["path"]
        assert int(reserved_bytes(trace)[-1]) == trace.end_reserved
        assert not any("fit" in warning or "left out" in warning for warning in trace.warnings)
        assert trace.complete == (row["start_reserved_bytes"] == "0")


def test_snapshots_without_history(data_dir):
    rows = index_of(data_dir, {"snapshot-segments-only", "snapshot-parser-test"})
    assert len(rows) == 5
    for row in rows:
        [trace] = read_trace(data_dir / row["path"])
        assert len(trace.segments) == int(row["segments"])
        assert len(trace.pools) == int(row["pools"])
        if row["class"] == "snapshot-segments-only":
            assert len(trace) == 0
            assert trace.start_reserved == trace.end_reserved == int(row["end_reserved_bytes"])
            waiting = trace.start.size[trace.start.pending].sum()
            assert int(trace.start.size.sum() - waiting) == int(row["end_allocated_bytes"])


def test_recordings(data_dir):
    folder = data_dir / "recordings"
    rows = index_of(folder)
    assert len(rows) == 14
    for row in rows:
        [trace] = read_trace(folder / row["file"])
        assert trace.complete, row["file"]
        if row["events"]:
            counted = np.isin(trace.action, (Action.ALLOC, Action.FREE_COMPLETED))
            assert int(np.count_nonzero(counted)) == int(row["events"])
        streams = len(np.unique(trace.stream[trace.action == Action.ALLOC]))
        assert streams == int(row["streams"])
        assert live_bytes(trace, Action.FREE_REQUESTED).max() / GIB == pytest.approx(
            float(row["peak_requested_GiB"]), abs=6e-4
        )
        assert reserved_bytes(trace).max() / GIB == pytest.approx(float(row["native_reserved_GiB"]), abs=6e-3)
        assert int(reserved_bytes(trace)[-1]) == trace.end_reserved
        calls = int(np.count_nonzero(trace.action == Action.EMPTY_CACHE))
        # DeepSpeed calls empty_cache once while it sets up; the capture of each of four graphs begins with one.
        assert calls == {"deepspeed-z3": 1, "graph-step": 4}.get(row["framework"], 0)


def test_logs_of_other_programs(data_dir):
    rows = index_of(data_dir, {"kineto-memory", "minimalloc-csv", "stalloc-text", "rmm-csv"})
    assert len(rows) == 10
    for row in rows:
        [trace] = read_trace(data_dir / row["path"])
        assert trace.allocations == int(row["allocs"])
        events = np.isin(trace.action, (Action.ALLOC, Action.FREE_REQUESTED, Action.OOM))
        assert int(np.count_nonzero(events)) == int(row["events"])
        assert trace.device == (0 if row["device"] == "-" else int(row["device"]))
        assert not trace.completions_recorded
        for column, step in (("peak_live_requested_bytes", 1), ("peak_live_512_bytes", 512)):
            if row[column] != "-":
                assert live_bytes(trace, Action.FREE_REQUESTED, step=step).max() == int(row[column])
        if row["class"] == "minimalloc-csv":
            assert trace.capacity == int(row["path"].split(".")[-2])
        elif row["class"] == "kineto-memory":
            assert int(trace.start.bytes.sum()) == int(row["start_live_bytes"])
            assert trace.start_reserved == trace.end_reserved == int(row["end_reserved_bytes"])
            assert not any("running sum" in warning for warning in trace.warnings)


# As published for them, in GiB: what is alive at most, and of that in what native PyTorch reserved.
PLAIN_ROWS = {
    "flash_fsdp1_opt6.7b_R_var": 20.94,
    "flash_opt1.3b_LR_var": 17.71,
    "flash_opt1.3b_R_var": 14.97,
    "fsdp1_opt6.7b_R_var": 25.59,
    "tinyllama_R_var": 22.99,
}


def test_plain_rows(data_dir):
    for name, peak in PLAIN_ROWS.items():
        [trace] = read_trace(data_dir / "gmlake-traces" / f"{name}.bin.xz")
        assert trace.complete
        assert live_bytes(trace, Action.FREE_REQUESTED).max() / GIB == pytest.approx(peak, abs=0.01)
        assert len(np.unique(trace.stream)) == (4 if "fsdp1" in name else 1)


def test_cases(data_dir):
    rows = index_of(data_dir, {"case"})
    assert len(rows) == 28
    for row in rows:
        [trace] = read_trace(data_dir / row["path"])
        operations = ~np.isin(trace.action, (Action.FREE_COMPLETED,))
        assert int(np.count_nonzero(operations)) == int(row["events"])
        assert trace.allocations == int(row["allocs"])
        peak = live_bytes(trace, Action.FREE_REQUESTED, step=512).max()
        assert peak == int(row["peak_live_512_bytes"])
        assert {"title", "kind", "source", "good allocator", "good_reserved_max_mib"} <= set(trace.header)


def test_the_start_is_what_a_plain_walk_back_finds(data_dir):
    """Against another way to the same: the events undone one by one, in plain Python."""
    for row in index_of(data_dir, {"snapshot"}):
        if not row["path"].endswith(".pickle"):
            continue
        device = int(row["device"])
        value = pickle.loads((data_dir / row["path"]).read_bytes())
        alive = {
            block["address"]: (block["requested_size"], block["size"], block["state"] != "active_allocated")
            for held in value["segments"]
            if held["device"] == device
            for block in held["blocks"]
            if block["state"] != "inactive"
        }
        for event in reversed(value["device_traces"][device]):
            address = event.get("addr")
            if event["action"] == "alloc":
                del alive[address]
            elif event["action"] == "free_completed":
                assert address not in alive
                alive[address] = (event["size"], None, True)
            elif event["action"] == "free_requested":
                alive[address] = (*alive[address][:2], False)
        [trace] = read_trace(data_dir / row["path"], device=device)
        assert trace.start.address.tolist() == sorted(alive)
        for address, *found in zip(
            trace.start.address.tolist(),
            trace.start.bytes.tolist(),
            trace.start.size.tolist(),
            trace.start.pending.tolist(),
            strict=True,
        ):
            asked, size, pending = alive[address]
            assert found == [asked, size or found[1], pending]
            assert found[1] >= asked


@pytest.mark.parametrize("name", ["hf_opt1.3b_R_var", "fsdp2_opt6.7b_R_w8", "graph_step"])
def test_parquet_is_exact_and_small(data_dir, tmp_path, name):
    [trace] = read_trace(data_dir / "recordings" / f"{name}.pickle.gz")
    write_trace(trace, tmp_path / "a.parquet")
    [again] = read_trace(tmp_path / "a.parquet")
    assert same(trace, again)
    assert (tmp_path / "a.parquet").stat().st_size < 1_000_000


def test_cases_read_back_the_same(data_dir, tmp_path):
    for row in index_of(data_dir, {"case"}):
        [trace] = read_trace(data_dir / row["path"])
        for name in ("a.case", "a.parquet"):
            write_trace(trace, tmp_path / name)
            [again] = read_trace(tmp_path / name)
            assert same(trace, again), row["path"]
        lines = (data_dir / row["path"]).read_text().splitlines()
        written = (tmp_path / "a.case").read_text().splitlines()
        assert [line.split()[0] for line in written if line[0] != "#"] == [
            line.split()[0] for line in lines if line[0] != "#"
        ]


def test_a_snapshot_as_a_case_asks_for_the_same(data_dir, tmp_path):
    [trace] = read_trace(data_dir / "recordings" / "graph_step.pickle.gz")
    write_trace(trace, tmp_path / "a.case")
    [again] = read_trace(tmp_path / "a.case")
    assert np.array_equal(
        live_bytes(trace, Action.FREE_REQUESTED).max(), live_bytes(again, Action.FREE_REQUESTED).max()
    )
    allocated, read_back = trace.action == Action.ALLOC, again.action == Action.ALLOC
    for column in ("id", "bytes", "stream", "pool"):
        assert np.array_equal(getattr(trace, column)[allocated], getattr(again, column)[read_back])
    assert not np.isin(again.action, SEGMENT_ACTIONS).any()


_MEASURE = """
import resource, sys, time
import movie.trace
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.process_time()
[trace] = movie.trace.read_trace(sys.argv[1])
print(len(trace), time.process_time() - began, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def test_loading_is_fast_and_lean(data_dir):
    """300,000 events in at most 3 s of one core, and at most 10 bytes of memory for each byte of the snapshot."""
    path = data_dir / "recordings" / "hf_llama8b_LR_var.pickle.gz"
    size = len(gzip.decompress(path.read_bytes()))
    done = subprocess.run([sys.executable, "-c", _MEASURE, path], check=True, capture_output=True, text=True)
    rows, seconds, memory = (float(word) for word in done.stdout.split())
    assert seconds / rows * 300_000 <= 3
    assert memory <= 10 * size
