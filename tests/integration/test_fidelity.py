"""`native` against real recordings of PyTorch: each address, each segment, and what was reserved at most."""

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from movie.evaluate.fidelity import check_native, main
from movie.evaluate.replay import replay
from movie.trace import read_trace
from movie.trace.model import Action, Trace

SNAPSHOTS = (
    "attention_tiny_from_empty.pickle",
    "cs336_large_fwd_fp32_ctx256.pickle",
    "cs336_large_fwd_grad_bf16_ctx512_ambiguous_start.pickle",
    "cs336_large_fwd_grad_fp32_ctx256.pickle",
    "cs336_medium_inference_ctx512.pickle",
    "cs336_medium_training_ctx1024.pickle",
    "cs336_xl_fullstep_bf16_ctx512.pickle",
    "cs336_xl_fullstep_fp32_ctx128.pickle",
    "cs336_xl_fwd_bf16_ctx128.pickle",
    "cs336_xl_fwd_bf16_ctx2048.pickle",
    "cs336_xl_fwd_fp32_ctx128_4_device_lists.pickle",
    "lm_2b7_fwd_bf16_seq256.pickle",
    "lm_fwd_bf16_ctx128_memoryviz.html",
    "lm_fwd_bwd_mixed_200_from_empty.pickle",
    "lm_fwd_fp32_200_from_empty.pickle",
    "lm_fwd_fp32_ctx256_repeated.pickle",
    "lm_fwd_mixed_live_grows.pickle.gz",
    "lm_inference_bf16_ctx512_795_segment_allocs.pickle",
    "lm_small_inference_fp32_ctx512_from_empty.pickle",
    "lm_torch_compile_steps.pickle",
    "lm_training_fp32_ctx128_fragmented.pickle",
    "synthetic_two_devices_map_unmap_oom.pickle",
    "zeroth_order_federated_from_empty.pickle",
)
# Recorded with torch up to 2.11, and telling the two tie rules apart.
OLD_TIE_RULE = (
    "attention_tiny_from_empty.pickle",
    "lm_small_inference_fp32_ctx512_from_empty.pickle",
    "lm_training_fp32_ctx128_fragmented.pickle",
    "zeroth_order_federated_from_empty.pickle",
)
FROM_EMPTY = (
    "attention_tiny_from_empty.pickle",
    "lm_fwd_bwd_mixed_200_from_empty.pickle",
    "lm_fwd_fp32_200_from_empty.pickle",
    "lm_small_inference_fp32_ctx512_from_empty.pickle",
    "zeroth_order_federated_from_empty.pickle",
)
RECORDINGS = (
    "ds_opt1.3b_LR_w4.pickle.gz",
    "ds_opt13b_LR_w4.pickle.gz",
    "ds_vicuna13b_R_w4.pickle.gz",
    "fsdp2_opt6.7b_R_w8.pickle.gz",
    "fsdp2_vicuna13b_LRO_w4.pickle.gz",
    "graph_step.pickle.gz",
    "hf_codegen2b_N.pickle.gz",
    pytest.param("hf_llama8b_LR_var.pickle.gz", marks=pytest.mark.slow),
    "hf_mixtral_R.pickle.gz",
    "hf_opt1.3b_N_fix.pickle.gz",
    "hf_opt1.3b_R_var.pickle.gz",
    "hf_tinyllama_R_eval.pickle.gz",
    pytest.param("rlhf_torch_R_b24_fix.pickle.gz", marks=pytest.mark.slow),
    "vis_sd15_R.pickle.gz",
)


def rows_of(index: Path) -> Iterator[dict[str, str]]:
    with index.open(newline="") as file:
        yield from csv.DictReader(file, delimiter="\t")


@pytest.fixture(scope="module")
def snapshots(data_dir: Path) -> dict[str, dict[str, str]]:
    """Rows of the index by file name: snapshots of the native allocator."""
    rows = rows_of(data_dir / "INDEX.tsv")
    return {Path(row["path"]).name: row for row in rows if row["class"] == "snapshot" and row["mode"] == "native"}


@pytest.fixture(scope="module")
def recordings(data_dir: Path) -> dict[str, dict[str, str]]:
    return {row["file"]: row for row in rows_of(data_dir / "recordings" / "INDEX.tsv")}


def test_every_file_of_the_indexes_is_checked_here(snapshots, recordings):
    assert set(snapshots) == set(SNAPSHOTS)
    assert set(recordings) == {name if isinstance(name, str) else name.values[0] for name in RECORDINGS}


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_snapshots_are_predicted_exactly(name, snapshots, data_dir):
    row = snapshots[name]
    [trace] = read_trace(data_dir / row["path"], device=int(row["device"]))
    result = check_native(trace)
    assert result.exact, result
    assert result.allocations == int(row["allocs"])
    assert result.segments == int(np.count_nonzero(trace.action == Action.SEGMENT_ALLOC))
    assert "address" in result.ties
    if name in OLD_TIE_RULE:
        assert result.ties == ("address",)
    # One file has a start block whose true size only its later rows tell.
    assert result.resized_start_blocks == ("ambiguous_start" in name)


@pytest.mark.parametrize("name", FROM_EMPTY)
def test_a_replay_from_empty_reserves_what_was_recorded(name, snapshots, data_dir):
    [trace] = read_trace(data_dir / snapshots[name]["path"])
    result = replay(trace, "native")
    assert result.peak_reserved == int(snapshots[name]["peak_reserved_bytes"])


@pytest.fixture(scope="module")
def recording(request, data_dir) -> Trace:
    [trace] = read_trace(data_dir / "recordings" / request.param)
    return trace


@pytest.mark.parametrize("recording", RECORDINGS, indirect=True)
class TestRecordings:
    """Whole runs of torch 2.14 from the first allocation on."""

    def test_is_predicted_exactly(self, recording):
        result = check_native(recording)
        assert result.exact, result
        assert result.ties == ("segment",)
        assert result.resized_start_blocks == 0

    def test_a_replay_reserves_what_was_recorded(self, recording, recordings):
        result = replay(recording, "native", {"tie": "segment"})
        segments = np.where(recording.action == Action.SEGMENT_ALLOC, recording.bytes, 0)
        segments -= np.where(recording.action == Action.SEGMENT_FREE, recording.bytes, 0)
        assert result.completed
        assert result.peak_reserved == int(np.cumsum(segments).max())
        assert result.end_reserved == recording.end_reserved
        assert result.driver["malloc"] == int(np.count_nonzero(recording.action == Action.SEGMENT_ALLOC))
        assert result.driver["mfree"] == int(np.count_nonzero(recording.action == Action.SEGMENT_FREE))
        text = recordings[Path(recording.path).name]["native_reserved_GiB"]
        digits = len(text.partition(".")[2])
        assert result.peak_reserved / 2**30 == pytest.approx(float(text), abs=0.6 * 10**-digits)


def test_the_command_prints_a_line_a_file(data_dir, capsys):
    folder = data_dir / "snapshots"
    assert main([str(folder / SNAPSHOTS[0]), str(folder / "synthetic_two_devices_map_unmap_oom.pickle")]) == 0
    output = capsys.readouterr()
    lines = output.out.splitlines()
    assert lines[0].split() == ["tie", "allocs", "wrong", "unexpected", "missing", "size", "lost", "resized", "file"]
    assert lines[1].split() == ["address", "36", "0", "0", "0", "0", "0", "0", SNAPSHOTS[0]]
    assert len(lines) == 3
    assert "device 1" in output.err  # expandable segments: named, not checked


def test_the_command_refuses_what_it_cannot_read(tmp_path, capsys):
    assert main([]) == 2
    assert main([str(tmp_path / "none.pickle")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
