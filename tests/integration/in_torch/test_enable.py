"""When MOVie can become the allocator of a process, and what is said when it cannot."""

import json
import subprocess
import sys
import textwrap

import pytest
from torch_build import require_cuda_torch
from torch_child import printed, run_under_movie

# Tries to enable, and prints what came of it.
_ATTEMPT = """
import json, warnings
import movie
from movie.errors import InputError

def attempt(*arguments, **config):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            outcome = movie.enable(*arguments, **config)
        except (movie.EnableError, InputError) as error:
            outcome = f"{type(error).__name__}: {error}"
    return [outcome, *(str(warning.message) for warning in warned)]
"""


def _attempts(code, **settings):
    return printed("import torch\n" + _ATTEMPT + textwrap.dedent(code), enable=False, **settings)


def test_enabling_again_with_the_same_configuration_changes_nothing():
    first, again, same, other = _attempts(
        "print(json.dumps([attempt(), attempt(), attempt(movie.Config()), attempt(movie.Config(policy='lean'))]))",
        MOVIE_BRIDGE="",
    )
    assert first == again == same == [True]
    assert other[0].startswith("EnableError: MOVie is already enabled in this process with Config(policy='auto'")


def test_it_is_too_late_once_cuda_is_initialised():
    outcome = _attempts("torch.empty(1, device='cuda')\nprint(json.dumps(attempt()))")
    assert outcome[0].startswith("EnableError: CUDA is already initialised in this process")
    assert "movie run" in outcome[0], "says what to do"


@pytest.mark.parametrize("conf", ["backend:cudaMallocAsync", ""])
def test_another_allocator_is_there_already(conf):
    swap = "" if conf else "torch._C._cuda_changeCurrentAllocator(torch._C._cuda_customAllocator(1, 1))"
    outcome = _attempts(f"{swap}\nprint(json.dumps(attempt()))", PYTORCH_CUDA_ALLOC_CONF=conf)
    assert outcome[0].startswith("EnableError: this process uses the allocator ")


def test_values_that_cannot_be():
    outcomes = _attempts(
        """
        import os
        def by(name, value):
            os.environ[name] = value
            outcome = attempt()
            del os.environ[name]
            return outcome[0]
        print(json.dumps([by("MOVIE_POLICY", "greedy"), by("MOVIE_PAGE", "lots"), by("MOVIE_PAGE", "3MiB"),
                          by("MOVIE_OPTIONS", "recall"), by("MOVIE_OPTIONS", "colour=red")]))
        """
    )
    policy, page, odd_page, form, unknown = outcomes
    assert policy == "InputError: policy 'greedy' is unknown; there are: auto, lean"
    assert page.startswith("InputError: page 'lots' is not a size")
    assert odd_page.startswith("InputError: page '3MiB' is not a multiple of 2 MiB")
    assert form == "InputError: MOVIE_OPTIONS: 'recall' is not of the form key=value"
    assert unknown.startswith("InputError: option 'colour' is unknown; there are: page, ")


def test_settings_of_the_environment_reach_the_allocator():
    settings = printed(
        """
        import json
        torch.empty(1, device="cuda")
        snapshot = torch.cuda.memory._snapshot()
        try:
            torch.empty(1 << 30, device="cuda")
        except torch.OutOfMemoryError as error:
            print(json.dumps([snapshot["allocator_settings"]["movie"], "capped at 64.00 MiB" in str(error)]))
        """,
        MOVIE_POLICY="lean",
        MOVIE_MEMORY="64MiB",
        MOVIE_OPTIONS="recall=off",
    )
    assert settings[0] | {"fallback": "error"} == {
        "policy": "lean",
        "memory": "64MiB",
        "fallback": "error",
        "bridge": "off",
        "options": {"recall": "off"},
    }
    assert settings[1]


def _without_driver(code):
    """No phantom, and no driver either."""
    require_cuda_torch()
    result = subprocess.run(
        [sys.executable, "-c", "import torch\n" + _ATTEMPT + code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def no_driver():
    if subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False).stdout.count("libcuda.so"):
        pytest.skip("this machine has a CUDA driver")


@pytest.mark.usefixtures("no_driver")
def test_without_a_driver():
    outcome = _without_driver("print(json.dumps(attempt()))")
    assert outcome[0].startswith("EnableError: there is no CUDA driver on this machine")


@pytest.mark.usefixtures("no_driver")
def test_without_a_driver_the_fallback_leaves_torch_as_it_was():
    code = """
outcome = attempt(movie.Config(fallback="native"))
print(json.dumps([outcome, movie.enabled(), torch.cuda.memory.get_allocator_backend(), torch.ones(2).sum().item()]))
"""
    outcome, enabled, backend, total = _without_driver(code)
    assert outcome[0] is False
    assert outcome[1].startswith("MOVie is not used, PyTorch's own allocator is: there is no CUDA driver")
    assert (enabled, backend, total) == (False, "native", 2.0)


_OLD = "import movie._core\nmovie._core.torch.driver_version = lambda: 10020\n"


def test_a_driver_that_is_too_old():
    outcome = _attempts(_OLD + "print(json.dumps(attempt()))")
    assert outcome[0].startswith("EnableError: the CUDA driver is too old (CUDA 10.2): MOVie needs one for CUDA 11.2")


def test_a_driver_that_is_too_old_and_the_fallback():
    code = _OLD + "print(json.dumps([attempt(movie.Config(fallback='native')), torch.ones(3, device='cuda').numel()]))"
    (outcome, warning), numel = _attempts(code)
    assert outcome is False
    assert "too old" in warning
    assert numel == 3


@pytest.fixture
def card_without_vmm(tmp_path):
    """The property file of a card whose driver maps no memory."""
    from movie.phantom import cards  # noqa: PLC0415

    text = (cards._FOLDER / "a100-80.card").read_text(encoding="utf-8")
    path = tmp_path / "virtual.card"
    path.write_text(text + "virtual_memory = no\n", encoding="utf-8")
    return str(path)


def test_a_card_without_virtual_memory(card_without_vmm):
    result = run_under_movie("torch.empty(1, device='cuda')", card=card_without_vmm)
    assert result.returncode == 1
    last = result.stderr.strip().splitlines()[-1]
    assert "has no virtual memory management, which MOVie needs" in last
    assert "MOVIE_FALLBACK=native" in last


def test_a_card_without_virtual_memory_and_the_fallback(card_without_vmm):
    outcome = _attempts(
        "print(json.dumps([*attempt(), torch.ones(3, device='cuda').numel()]))",
        card=card_without_vmm,
        MOVIE_FALLBACK="native",
    )
    assert outcome[0] is False
    assert "has no virtual memory management" in outcome[1]
    assert outcome[2] == 3


def test_a_bridge_that_is_required_and_was_not_built(tmp_path):
    outcome = _attempts("print(json.dumps(attempt()))", MOVIE_BRIDGE="require", XDG_CACHE_HOME=str(tmp_path))
    assert outcome[0].startswith("EnableError: the bridge to PyTorch ")
    assert "movie bridge build" in outcome[0]
