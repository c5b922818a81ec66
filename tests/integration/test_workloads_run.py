"""Each workload that the acceptance of captures leaves out, as small as can be: it comes to its end on a phantom."""

import subprocess
import sys

import pytest
from torch_build import require_cuda_torch

from movie.trace import read_trace

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

_PYTHON = (sys.executable, "-m")
_FOUR = (*_PYTHON, "torch.distributed.run", "--nproc-per-node", "4", "-m")
_DEEPSPEED = (sys.executable, "-c", "from deepspeed.launcher.runner import main; main()", "--num_gpus", "4", "--module")


@pytest.mark.parametrize(
    ("launcher", "command"),
    [
        (_PYTHON, "rlhf --model opt-125m --batch 2 --length 64 --iterations 2 --lengths var"),
        (_PYTHON, "rollouts --model opt-125m --batch 16 --length 64 --iterations 1 --lengths tail"),
        (_PYTHON, "accumulation --model mobilellm-125m --batch 2 --length 256 --lengths tail --iterations 2"),
        (_PYTHON, "evaluating --model mobilellm-125m --batch 2 --length 256 --lengths var --iterations 5"),
        (_PYTHON, "packed --model mobilellm-125m --batch 2 --length 1024 --iterations 2"),
        (_FOUR, "fsdp2 --model qwen2-0.5b --strategy LR --length 64 --iterations 2"),
        (_FOUR, "checkpointing --model opt-125m --strategy R --length 128 --iterations 5"),
        (_DEEPSPEED, "rlhf_zero3 --model opt-125m --batch 2 --length 64 --lengths var --iterations 2"),
    ],
    ids=lambda value: value.split()[0] if isinstance(value, str) else "",
)
def test_it_runs(tmp_path, launcher, command):
    require_cuda_torch("transformers", "peft", "deepspeed")
    workload, *options = command.split()
    path = tmp_path / "run.parquet"
    capture = (*_PYTHON, "movie", "capture", "-o", str(path), "--")
    result = subprocess.run(
        [*capture, *launcher, f"movie.workloads.{workload}", *options],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    (trace,) = read_trace(path)
    assert trace.complete
    assert trace.allocations > 1000
