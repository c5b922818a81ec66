"""The tool that tries the phantom with each release of torch: what it says where it cannot, or must not, say "ok"."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_TOOLS = Path(__file__).parents[2] / "tools"
sys.path.insert(0, str(_TOOLS))

import phantom_matrix  # noqa: E402


@pytest.mark.slow
def test_a_release_that_cannot_be_had_is_named_with_the_reason() -> None:
    alone = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": "", "PIP_CONSTRAINT": os.devnull}
    environment = {**os.environ, **alone}
    result = subprocess.run(
        [sys.executable, str(_TOOLS / "phantom_matrix.py"), "0.0.0"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    first, last = result.stdout.splitlines()
    assert first.startswith("0.0.0   not installable: ERROR: ")
    assert last == "1 releases, 0 tried, 0 failed"


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("Traceback\n  File x\nRuntimeError: why\n", "RuntimeError: why"),
        ("phantom: cufftCreate is not implemented\nphantom: what to do\n", "phantom: cufftCreate is not implemented"),
        ("one\ntwo\n", "two"),
        (
            "phantom: this T4 is a phantom: no such card is used\nterminate called\n  what():  why\nframe #0\n",
            "what():  why",
        ),
        ("", "no output"),
    ],
)
def test_the_line_that_tells_why(output: str, line: str) -> None:
    assert phantom_matrix.reason(output) == line


def test_what_pip_finds_in_conflict() -> None:
    output = """Looking in links
The conflict is caused by:
    The user requested torch===2.15.0
    The user requested (constraint) torch<=2.14.1

To fix this you could try to:
"""
    errors = "ERROR: Cannot install torch===2.15.0\nERROR: ResolutionImpossible: for help visit x\n"
    why = "The user requested torch===2.15.0; The user requested (constraint) torch<=2.14.1"
    assert phantom_matrix.refusal(output, errors) == why
    assert phantom_matrix.refusal("Looking in links\n", errors) == "ERROR: ResolutionImpossible: for help visit x"


@pytest.mark.parametrize(
    ("symbols", "native", "failed"), [("ok", "ok", False), ("missing", "ok", True), ("ok", "exit code 1", True)]
)
def test_a_release_has_failed_unless_all_of_it_is_ok(symbols: str, native: str, failed: bool) -> None:
    outcome = phantom_matrix.Outcome("2.6.0", symbols=symbols, modes={"native": native, "expandable": "ok"})
    assert outcome.failed is failed
    assert phantom_matrix.Outcome("2.6.0", problem="not installable").failed is False
