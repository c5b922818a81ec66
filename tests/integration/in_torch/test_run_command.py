"""`movie run`: programs and launchers as they are, with MOVie as their allocator."""

import os
import subprocess
import sys

import pytest
from torch_build import require_cuda_torch

_PROGRAM = """
import sys, torch
block = torch.ones(1 << 20, device="cuda")
print(torch.cuda.memory.get_allocator_backend(), torch.cuda.memory_allocated(), torch.cuda.get_device_name())
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
"""


def _movie(*arguments, **variables):
    require_cuda_torch()
    environment = {**os.environ, "MOVIE_BRIDGE": "off", **variables}
    command = [sys.executable, "-m", "movie", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(_PROGRAM, encoding="utf-8")
    return str(path)


def test_an_unmodified_program_on_a_phantom(program):
    result = _movie("run", "--phantom", "h100", "--", sys.executable, program, "3")
    assert result.returncode == 3, "the program's own exit code"
    assert result.stdout.startswith("movie 4194304 NVIDIA H100")


def test_options_after_the_program_are_its_own(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("import sys, torch; print(sys.argv[1:])")
    result = _movie("run", "--phantom", "h100", sys.executable, str(path), "--memory", "3")
    assert result.stdout == "['--memory', '3']\n", result.stderr[-2000:]


def test_a_launcher(program):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", program]
    result = _movie("run", "--phantom", "a100-80", "--", *command)
    assert result.returncode == 0, result.stderr[-2000:]
    assert result.stdout.startswith("movie 4194304")


def test_options_reach_the_program(tmp_path):
    path = tmp_path / "config.py"
    path.write_text(
        "import torch, movie\ntorch.cuda.init()\n"
        "settings = torch.cuda.memory._snapshot()['allocator_settings']['movie']\n"
        "print(settings['policy'], torch.cuda.mem_get_info()[1])\n",
        encoding="utf-8",
    )
    result = _movie(
        "run", "--phantom", "a100-80", "--memory", "10GiB", "--policy", "lean", "--", sys.executable, str(path)
    )
    assert result.stdout.split() == ["lean", str(10 << 30)], result.stderr[-2000:]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--phantom", "a1000", "--"], "no card is called 'a1000'"),
        (["--phantom", "a100-80", "--policy", "greedy", "--"], "policy 'greedy' is unknown"),
        (["--memory", "lots", "--"], "'lots' is not a size"),
        (["--lag", "5", "--"], "are of a phantom"),
    ],
)
def test_bad_usage_is_one_line(arguments, said, program):
    result = _movie("run", *arguments, sys.executable, program)
    assert result.returncode == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_where_movie_cannot_work_the_program_does_not_begin(program):
    result = _movie(
        "run", "--phantom", "a100-80", "--", sys.executable, program, MOVIE_BRIDGE="require", XDG_CACHE_HOME="/nowhere"
    )
    assert result.returncode == 1
    assert "movie: the bridge to PyTorch" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_bridge_is_built(tmp_path):
    result = _movie("bridge", "build", XDG_CACHE_HOME=str(tmp_path))
    assert result.returncode == 0, result.stderr
    path = result.stdout.strip()
    assert path.startswith(str(tmp_path))
    assert os.stat(path).st_mode & 0o777 == 0o700


def test_a_bridge_without_a_compiler(tmp_path):
    result = _movie("bridge", "build", XDG_CACHE_HOME=str(tmp_path), CXX="no-such-compiler", PATH="/nowhere")
    assert result.returncode == 2
    assert "the bridge needs a C++ compiler" in result.stderr


@pytest.mark.parametrize("switch", ["-I", "-E", "-S"])
def test_a_python_that_movie_cannot_get_into_does_not_run_without_it(program, switch):
    result = _movie("run", "--phantom", "a100-80", "--", sys.executable, switch, program)
    assert result.returncode == 2
    assert f"python {switch}" in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_a_program_without_movie_says_so_at_the_end(program):
    command = ["sh", "-c", f"exec {sys.executable} -I {program} 4"]
    result = _movie("run", "--phantom", "a100-80", "--", *command)
    assert result.returncode == 4
    assert result.stdout.startswith("native ")
    assert "MOVie was not used" in result.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"MOVIE_OPTIONS": "speed=fast"}, "option 'speed' is unknown"),
        ({"MOVIE_OPTIONS": "most_mapped=nan"}, "most_mapped"),
        ({"MOVIE_MEMORY": "0"}, "leaves nothing"),
    ],
)
def test_settings_of_the_environment_are_checked_before_the_program_runs(program, variables, said):
    result = _movie("run", "--phantom", "a100-80", "--", sys.executable, program, **variables)
    assert result.returncode == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_lateness_is_of_launches(program):
    result = _movie("run", "--phantom", "a100-80", "--lag", "soon", "--", sys.executable, program)
    assert result.returncode == 2
    assert "neither a number of launches nor 'never'" in result.stderr


def test_a_report_of_no_memory_says_what_a_program_can_do(tmp_path):
    path = tmp_path / "large.py"
    path.write_text("import torch\ntorch.empty(1 << 40, device='cuda')\n", encoding="utf-8")
    result = _movie("run", "--phantom", "a100-80", "--", sys.executable, str(path))
    assert result.returncode == 1
    assert "belong to others" in result.stderr
    assert "callback" not in result.stderr
