"""The tables of docs/pytorch.md, row by row, without the compiled bridge and with it."""

import re
from pathlib import Path

import pytest
from torch_child import bridge_cache, printed, run_file

__all__ = ["bridge_cache"]  # a fixture
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]  # the bridge is compiled, and two programs have all rows

_PROGRAM = Path(__file__).with_name("parity_rows.py")
_DOCUMENT = Path(__file__).parents[3] / "docs" / "pytorch.md"
_ROW = re.compile(r"\| (?P<name>[^|]+) \| (?P<hooks>[^|]+) \| (?P<bridge>[^|]+) \|")


def _documented() -> dict[str, dict[str, str]]:
    text = _DOCUMENT.read_text(encoding="utf-8").partition("## What works")[2]
    rows = (match.groupdict() for match in map(_ROW.fullmatch, text.splitlines()) if match)
    return {
        row.pop("name"): row for row in rows if not row["name"].startswith("-") and row["hooks"] != "without the bridge"
    }


_ROWS = _documented()


@pytest.fixture(scope="module")
def outcomes(request, bridge_cache):
    """How each row ended: under function pointers, and through the bridge."""
    found = {}
    for way, mode in (("hooks", "off"), ("bridge", "require")):
        found[way] = run_file(_PROGRAM, count=2, timeout=800, MOVIE_BRIDGE=mode, XDG_CACHE_HOME=str(bridge_cache))
    return found


@pytest.mark.parametrize("way", ["hooks", "bridge"])
@pytest.mark.parametrize("name", _ROWS)
def test_a_row_is_as_documented(outcomes, name, way):
    said, happened = _ROWS[name][way], outcomes[way][name]
    if "Error: " in said or "Warning: " in said:
        assert happened.startswith(said)
    elif said == "works":
        assert happened == "works"
    else:
        assert happened.startswith("wrong: ")


def test_every_public_function_has_a_row(outcomes):
    public = printed("import json; print(json.dumps(torch.cuda.memory.__all__))")
    assert set(public) <= set(_ROWS)
    assert set(outcomes["hooks"]) == set(_ROWS), "rows and tests are the same"


def test_counters_have_the_keys_of_native():
    show = "import json; torch.empty(1, device='cuda'); print(json.dumps(sorted(torch.cuda.memory_stats())))"
    native = printed("import torch\n" + show, enable=False)
    ours = printed(show)
    assert set(native) == set(ours)
