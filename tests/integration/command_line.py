"""The command line as a user has it: a process of its own, and its two streams."""

import os
import subprocess
import sys
from pathlib import Path

# A little run: two blocks that live on, one hole between them, one request that wants more than the hole.
SMALL_CASE = """\
# gpu-alloc-case 1
# title: a hole
capacity {capacity}
alloc a 33554432 0 0
alloc b 67108864 0 0
alloc c 33554432 0 0
free b
alloc d 83886080 0 0
use d 1
free d
"""
SMALL_CASE_EVENTS = 8  # a free without uses is two rows: asked for, and done
SMALL_CASE_PEAK = 144 * 2**20


def movie(*arguments, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `movie ARGUMENTS...` to its end; nothing is a terminal."""
    return subprocess.run(
        [sys.executable, "-m", "movie", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | {"COLUMNS": "80"} | environment,
        timeout=120,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def write_case(folder: Path, capacity: str = "none") -> Path:
    path = folder / "small.case"
    path.write_text(SMALL_CASE.format(capacity=capacity))
    return path


def assert_one_line_error(result: subprocess.CompletedProcess[str], *parts: str) -> None:
    """The contract for bad input: exit code 2, one line on standard error, with all the parts, and no output."""
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("movie: ")
    for part in parts:
        assert part in lines[0]
