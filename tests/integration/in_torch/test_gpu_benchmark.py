"""The script for a real card runs: dry, on the phantom, where its figures mean nothing."""

import json
from pathlib import Path

import pytest
from phantom_child import run_on_phantom
from torch_build import require_cuda_torch

pytestmark = pytest.mark.slow

_SCRIPT = Path(__file__).parents[3] / "benchmarks" / "gpu" / "run.py"


def _run(*arguments, **settings):
    require_cuda_torch()
    code = f"""
        import runpy, sys
        sys.argv = {["run.py", "--dry", "--minutes", "20", *arguments]!r}
        runpy.run_path({str(_SCRIPT)!r}, run_name="__main__")
    """
    return run_on_phantom(code, MOVIE_BRIDGE="off", timeout=1500, **settings)


@pytest.mark.timeout(1800)
def test_the_whole_script(tmp_path):
    result = _run("-o", str(tmp_path / "card.json"))
    assert result.returncode == 0, result.stderr[-3000:]
    document = json.loads((tmp_path / "card.json").read_text())
    sizes = document["driver"]["microseconds_by_handle_size"]
    assert [row["handle_mib"] for row in sizes] == [2, 8, 32, 128, 512]
    assert document["correctness"]["movie-lean"]["views"]["created"] > 0
    assert set(document["training"]) == {"lengths", "recomputation", "images"}
    for ways in document["training"].values():
        assert all(ways[way]["completed"] for way in ("native", "expandable", "movie", "movie-lean"))
    ways = document["training"]["lengths"]
    assert ways["movie-lean"]["reserved"] <= ways["native"]["reserved"]
    assert ways["movie-lean"]["smallest"]["completed"]
    assert document["requests"]["requests"][0][0] > 0
    assert [row["views"] for row in document["driver"]["beside_many_views"]] == [0, 250, 1000]
    assert "compute capability" in document["correctness"]["movie"]["bytes_wrong_under_dependent_launches"]

    again = _run("-o", str(tmp_path / "again.json"), "--only", "requests", "--against", str(tmp_path / "card.json"))
    assert again.returncode == 0, again.stderr[-3000:]
    document["requests"]["requests"][5][0] += 512
    (tmp_path / "other.json").write_text(json.dumps(document))
    other = _run("-o", str(tmp_path / "again.json"), "--only", "requests", "--against", str(tmp_path / "other.json"))
    assert other.returncode == 1
    assert "WRONG: request 5: " in other.stderr


def test_a_part_that_fails_is_told(tmp_path):
    result = _run("-o", str(tmp_path / "card.json"), "--only", "driver", memory=700_000_000)
    assert result.returncode == 1
    assert "WRONG: " in result.stderr


def test_it_ends_when_its_time_is_over(tmp_path):
    result = _run("-o", str(tmp_path / "card.json"), "--minutes", "0")
    assert result.returncode == 1
    assert "WRONG: no time was left" in result.stderr
    assert json.loads((tmp_path / "card.json").read_text())["seconds"] < 120
