"""`movie bench` with the real PyTorch on a phantom, as small as can be."""

import json
import subprocess
import sys
import time
from glob import glob
from pathlib import Path

import pytest
from bench_cells import SMALL
from command_line import assert_one_line_error, movie
from torch_build import require_cuda_torch

from movie.bench.cells import Cell
from movie.bench.run import run
from movie.bench.work import place_of
from movie.phantom.cards import DEFAULT, find_card
from movie.phantom.environment import phantom_environment
from movie.phantom.settings import PhantomSettings


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_cell_from_nothing_to_figures(tmp_path):
    require_cuda_torch("transformers", "peft")
    broken = Cell("no-such-model", "hf", "N", 1, 1, 128, "fix", 1)
    outcome, failed = run([SMALL, broken], tmp_path)
    assert outcome.failure == ""
    rows = {row["allocator"]: row for row in outcome.rows}
    for allocator in ("native", "expandable"):
        assert rows[allocator]["source"] == "run"
        assert 0.5 < rows[allocator]["utilization"] <= 1
        assert rows[allocator]["smallest_card"] is not None
    assert rows["native"]["replayed_reserved"] == rows["native"]["peak_reserved"], "the model predicts the run"
    assert rows["movie-lean"]["utilization"] > 0.9
    # 125 million parameters, 128 tokens, 6 operations for each pair; attention comes on top.
    assert rows["movie"]["operations"] == pytest.approx(6 * 125e6 * 128, rel=0.1)
    assert rows["movie"]["iteration_seconds"] > 0
    assert "exit code" in failed.failure

    place = place_of(tmp_path, SMALL)
    before = place.capture("native").stat().st_mtime_ns
    (again,) = run([SMALL], tmp_path)
    assert (again.seconds, list(again.rows)) == (0, list(outcome.rows))
    place.figures.unlink()
    (afresh,) = run([SMALL], tmp_path)
    assert place.capture("native").stat().st_mtime_ns == before, "captures are not made again"
    assert [row["peak_reserved"] for row in afresh.rows] == [row["peak_reserved"] for row in outcome.rows]


@pytest.mark.slow
def test_operations_of_varying_lengths_are_those_of_each_length():
    """Three lengths tell of all: the mean over ten lengths, counted one by one."""
    require_cuda_torch("transformers", "peft")
    program = """
from movie.workloads import flops
from movie.workloads.batches import lengths
from movie.workloads.options import Options
options = Options("mobilellm-125m", "R", 2, 10, 512, "var", 0)
told = flops.of_iteration(options)
model = flops.built(options)
each = [flops.of_batch(model, 2, length) for length in lengths(options)]
assert abs(told - sum(each) / len(each)) <= 1e-9 * told, (told, each)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]


@pytest.mark.slow
def test_operations_counted_in_a_run_are_those_counted_ahead():
    """The same training, once on a phantom and once without memory; attention's own kernels compute a little twice.

    So few iterations are not evaluated in between.
    """
    require_cuda_torch("transformers", "peft")
    options = ["--model", "mobilellm-125m", "--strategy", "R", "--batch", "2", "--length", "128", "--iterations", "2"]
    with phantom_environment(PhantomSettings(find_card(DEFAULT), quiet=True)) as environment:
        running, ahead = (
            subprocess.run(
                [sys.executable, "-m", *command, *options], capture_output=True, text=True, check=False, env=environment
            )
            for command in (("movie.workloads.operations", "evaluating"), ("movie.workloads.flops",))
        )
    assert running.returncode == 0, running.stderr[-2000:]
    assert int(running.stdout.splitlines()[-1]) == pytest.approx(int(ahead.stdout.splitlines()[-1]), rel=0.03)


@pytest.mark.slow
def test_a_bench_that_is_ended_leaves_no_process(tmp_path):
    require_cuda_torch("transformers", "peft")
    command = [sys.executable, "-m", "movie", "bench", "--quick", "--only", "mobilellm-*", "--work", tmp_path]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while len(started := _descendants(process.pid)) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(started) >= 2, "the cell, and its training run"
        process.terminate()
        assert process.wait(timeout=60) == 143
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]


def _descendants(process: int) -> set[int]:
    found: set[int] = set()
    for task in glob(f"/proc/{process}/task/*/children"):
        try:
            children = {int(pid) for pid in Path(task).read_text().split()}
        except OSError:  # it has just ended
            continue
        found |= children.union(*map(_descendants, children))
    return found


def test_the_list(tmp_path):
    result = movie("bench", "--quick", "--list", cwd=tmp_path)
    assert result.returncode == 0
    assert "opt-1.3b/zero3/Z/4x24/fix512x4" in result.stdout.splitlines()
    assert not list(tmp_path.iterdir())


def test_bad_usage(tmp_path):
    require_cuda_torch()
    assert_one_line_error(movie("bench", "--only", "gpt-5/*", cwd=tmp_path), "matches none")
    assert_one_line_error(movie("bench", "--quick", "--json", "no/where.json", cwd=tmp_path), "no/where.json")
    (tmp_path / "file").touch()
    assert_one_line_error(movie("bench", "--quick", "--work", "file", cwd=tmp_path), "no folder to work in")


def test_figures_that_are_there_make_all_documents(tmp_path):
    """Nothing is run: the cell's figures are in the work folder."""
    require_cuda_torch()
    place = place_of(tmp_path / "movie-bench", _quick_cell())
    place.folder.mkdir(parents=True)
    place.figures.write_text(json.dumps({"rows": []}))
    files = ("--json", "found.json", "--html", "found.html", "--markdown", "found.md")
    result = movie("bench", "--quick", "--only", _quick_cell().name, *files, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Utilization" in result.stdout
    assert json.loads((tmp_path / "found.json").read_text())["cells"] == []
    assert (tmp_path / "found.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "found.md").read_text().startswith("# ")
    result = movie("bench", "--quick", "--only", _quick_cell().name, "--json", "-", cwd=tmp_path)
    assert json.loads(result.stdout)["failed"] == []


def test_what_was_not_run_is_named_in_a_report(tmp_path):
    require_cuda_torch()
    place = place_of(tmp_path / "movie-bench", _quick_cell())
    place.folder.mkdir(parents=True)
    place.figures.write_text(json.dumps({"rows": []}))
    result = movie("bench", "--quick", "--report", "--json", "-", cwd=tmp_path)
    assert result.returncode == 1, "not all of it is there"
    failed = json.loads(result.stdout)["failed"]
    assert {one["reason"] for one in failed} == {"not run"}
    assert _quick_cell().name not in {one["cell"] for one in failed}


def test_recording_makes_no_figures(tmp_path):
    """All is recorded, so nothing is run; figures are asked for in another run."""
    require_cuda_torch()
    cell = _quick_cell()
    place = place_of(tmp_path / "movie-bench", cell)
    place.folder.mkdir(parents=True)
    for file in (place.capture("native"), place.capture("expandable"), place.operations):
        file.touch()
    result = movie("bench", "--quick", "--only", cell.name, "--record", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "1 of 1 cells are recorded in movie-bench" in result.stdout
    assert not place.figures.exists()
    assert_one_line_error(movie("bench", "--quick", "--record", "--json", "x.json", cwd=tmp_path), "--record")


def _quick_cell() -> Cell:
    from movie.bench.matrix import QUICK  # noqa: PLC0415

    return QUICK[0]
