"""`movie capture` of programs for several ranks: rank 0 runs alone, whatever launches it."""

import sys
import textwrap
from pathlib import Path

import pytest
from command_line import movie
from torch_build import require_cuda_torch

from movie.trace import read_trace

pytestmark = pytest.mark.slow  # each test starts PyTorch at least once

RANK = """
    import os, sys, torch
    import torch.distributed as dist
    print("started", sys.argv[1:], flush=True)
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(*sys.argv[1:2])
    print("rank", dist.get_rank(), "of", dist.get_world_size())
    part = torch.ones(1024, device="cuda")
    whole = torch.empty(1024 * dist.get_world_size(), device="cuda")
    dist.all_gather_into_tensor(whole, part)
    dist.all_reduce(part)
    dist.barrier()
    objects = [None] * dist.get_world_size()
    dist.all_gather_object(objects, {"rank": dist.get_rank()})
    print("objects", objects)
    cpu = dist.new_group(backend="gloo")
    dist.all_reduce(torch.ones(4), group=cpu)
    dist.monitored_barrier(cpu)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(256, 256).cuda())
    for _ in range(3):
        model(torch.ones(4, 256, device="cuda")).sum().backward()
    dist.destroy_process_group()
"""


@pytest.fixture(autouse=True)
def _needs_torch():
    require_cuda_torch("accelerate", "deepspeed")


def capture(folder: Path, command: list[str], **environment: str):
    """Runs a launcher with the program above. Returns what it wrote, and the trace."""
    program = folder / "rank.py"
    program.write_text(textwrap.dedent(RANK))
    trace = folder / "trace.parquet"
    result = movie("capture", "--device", "a100-80", "-o", trace, "--", *command, program, "nccl", **environment)
    assert result.returncode == 0, result.stderr[-4000:]
    (recorded,) = read_trace(trace)
    assert recorded.complete
    return result, recorded


@pytest.mark.parametrize(
    "launcher",
    [
        ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "8"],
        ["-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "4", "--rdzv-endpoint", "nowhere:1"],
        ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "8"],
        ["-c", "from deepspeed.launcher.runner import main; main()", "--num_gpus", "8", "--no_local_rank"],
    ],
    ids=["torchrun", "torchrun-2-nodes", "accelerate", "deepspeed"],
)
def test_launchers(tmp_path, launcher):
    result, trace = capture(tmp_path, [sys.executable, *launcher])
    assert result.stdout.count("started ['nccl']") == 1, "one process, with its own arguments"
    assert "rank 0 of 8" in result.stdout
    assert f"objects {[{'rank': 0}] * 8}" in result.stdout
    assert "rank 0 of 8 runs alone" in result.stderr
    assert trace.header["rank"] == "0 of 8"
    assert (trace.bytes == 8 * 4096).any(), "what all ranks gather"


def test_rank_0_that_the_environment_names(tmp_path):
    variables = {"RANK": "0", "WORLD_SIZE": "4", "LOCAL_RANK": "0", "MASTER_ADDR": "nowhere", "MASTER_PORT": "1"}
    result, trace = capture(tmp_path, [sys.executable], **variables)
    assert "rank 0 of 4" in result.stdout
    assert trace.header["rank"] == "0 of 4"


def test_another_rank_is_turned_down(tmp_path):
    program = tmp_path / "rank.py"
    program.write_text(textwrap.dedent(RANK))
    variables = {"RANK": "2", "WORLD_SIZE": "4", "LOCAL_RANK": "0"}
    command = ("capture", "--device", "a100-80", "-o", tmp_path / "trace.parquet", "--", sys.executable, program)
    result = movie(*command, **variables)
    assert result.returncode == 1
    assert "rank 0 runs alone, and this is rank 2 of 4" in result.stderr


def test_one_process_of_one_says_nothing_about_peers(tmp_path):
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "1"]
    result, _ = capture(tmp_path, [sys.executable, *launcher])
    assert "rank 0 of 1" in result.stdout
    assert "alone" not in result.stderr


def test_a_launched_program_that_fails(tmp_path):
    program = tmp_path / "rank.py"
    program.write_text("import sys\nsys.exit(9)\n")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    result = movie("capture", "--device", "a100-80", "-o", tmp_path / "trace.parquet", "--", *launcher, program)
    assert result.returncode == 9
    assert "exit code 9 before it used a card" in result.stderr
