"""For tests of MOVie under the real PyTorch: programs run in child processes, on a phantom card."""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from phantom_child import run_on_phantom
from torch_build import require_cuda_torch

ENABLE = """
import torch
import movie
movie.enable()
"""


@pytest.fixture(scope="session")
def bridge_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for XDG_CACHE_HOME in which the bridge to the installed PyTorch is built."""
    require_cuda_torch()
    cache = tmp_path_factory.mktemp("cache")
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-m", "movie", "bridge", "build"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert result.returncode == 0, result.stderr[-4000:]
    return cache


def run_under_movie(code: str, *, enable: bool = True, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Runs a program on a phantom (settings as in run_on_phantom), with MOVie enabled first. Without the bridge, unless
    MOVIE_BRIDGE is among the settings."""
    require_cuda_torch()
    settings.setdefault("MOVIE_BRIDGE", "off")
    return run_on_phantom((ENABLE if enable else "") + textwrap.dedent(code), **settings)


def printed(code: str, **settings: Any) -> Any:
    """What the program prints in its last line, as JSON. Fails with its standard error if it does not end well."""
    result = run_under_movie(code, **settings)
    assert result.returncode == 0, (result.returncode, result.stderr[-4000:])
    return json.loads(result.stdout.splitlines()[-1])


def run_file(path: Path, arguments: Sequence[str] = (), **settings: Any) -> Any:
    """The same for a program in a file."""
    code = f"""
        import runpy, sys
        sys.argv = {[str(path), *arguments]!r}
        runpy.run_path(sys.argv[0], run_name="__main__")
    """
    return printed(code, **settings)
