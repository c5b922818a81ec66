"""`movie fit -- PROGRAM`: the smallest phantom card on which a program completes, by running it."""

import json
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from command_line import assert_one_line_error, movie
from torch_build import require_cuda_torch

pytestmark = pytest.mark.slow

STEP = 128 << 20
# What native holds at its peak is more than it needs: three sizes that do not fit into each other's segments. Without
# a new attempt after what is cached has been given back, it would need 7 GiB.
PROGRAM = """
    import torch
    for size in (1 << 30, 2 << 30, 4 << 30):
        torch.empty(size, dtype=torch.uint8, device="cuda")
    print("done")
"""


@pytest.fixture(autouse=True)
def _needs_torch():
    require_cuda_torch()


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    return path


def test_the_smallest_card(program, tmp_path):
    result = movie("fit", "--json", "--step", "128MiB", "--phantom", "rtx3060", "--", sys.executable, program)
    assert result.returncode == 0, result.stderr[-4000:]
    document = json.loads(result.stdout)
    assert document["trace"]["peak_requested"] == 4 << 30
    assert document["trace"]["allocations"] == 3
    assert document["costs"] is None
    assert document["card"] == "NVIDIA GeForce RTX 3060"
    native, expandable = document["results"]
    assert (native["allocator"], expandable["allocator"]) == ("native", "expandable")
    assert native["ample_reserved"] == 7 << 30
    needed = (4 << 30) + document["context"]
    for found in (native, expandable):
        assert found["monotone"]
        assert 0 <= found["smallest_card"] - needed < 2 * STEP
    assert native["retries_there"] >= 1

    def on(card: int) -> int:
        size = ("--device", "rtx3060", "--memory", str(card), "--allocator", "native")
        return movie("capture", *size, "-o", tmp_path / "run.parquet", "--", sys.executable, program).returncode

    assert on(native["smallest_card"]) == 0
    assert on(needed - (4 << 20)) == 1


def test_the_table(program):
    result = movie("fit", "-a", "expandable", "--step", "1GiB", "--", sys.executable, program)
    assert result.returncode == 0, result.stderr[-4000:]
    assert "each run on a phantom NVIDIA A100-SXM4-80GB" in result.stdout
    assert "expandable" in result.stdout
    assert "native" not in result.stdout
    assert "done" in result.stderr, "what the program writes is no part of the table"


def test_a_program_that_fails_on_any_card(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("import torch\ntorch.zeros(1, device='cuda')\nraise SystemExit(4)\n")
    result = movie("fit", "--", sys.executable, path)
    assert result.returncode == 2
    assert result.stdout == ""
    assert "exit code 4, however large the card" in result.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("choice", "chosen"),
    [
        ("import os; os.environ['PYTORCH_CUDA_ALLOC_CONF'] = 'expandable_segments:True'", "'expandable', not 'native'"),
        ("import movie; movie.enable()", "'movie', not 'native'"),
    ],
)
def test_a_program_that_chooses_its_allocator_is_not_reported_under_another_name(tmp_path, choice, chosen):
    path = tmp_path / "program.py"
    path.write_text(f"{choice}\nimport torch\ntorch.ones(10, device='cuda')\n")
    result = movie("fit", "--", sys.executable, path)
    assert result.returncode == 2, result.stdout
    assert chosen in result.stderr.splitlines()[-1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_search(tmp_path, number):
    program = tmp_path / "program.py"
    program.write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n")
    command = [sys.executable, "-m", "movie", "fit", "--", sys.executable, program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        child = int(process.stderr.readline())
        process.send_signal(number)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert output == ""
    assert not Path(f"/proc/{child}").exists()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["-a", "movie", "--", sys.executable, "-c", ""], "native or expandable"),
        (["--curve", "--", sys.executable, "-c", ""], "--curve"),
        (["--step", "1KiB", "--", sys.executable, "-c", ""], "--step"),
        (["--phantom", "a100-90", "--", sys.executable, "-c", ""], "a100-90"),
        (["--phantom", "h100", "run.parquet"], "--phantom"),
    ],
)
def test_bad_options(arguments, part):
    assert_one_line_error(movie("fit", *arguments), part)
