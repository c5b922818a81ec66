"""The search for the largest batch: who fits with which, in as few runs as may be."""

import json
from dataclasses import replace

import pytest
from bench_cells import CAPTURED, captured

from movie.bench import largest
from movie.bench.largest import main, search


@pytest.mark.parametrize("start", [1, 5, 16, 100])
@pytest.mark.parametrize("limits", [{"a": 17, "b": 24}, {"a": 1, "b": 90}, {"a": 0, "b": 3}, {"a": 0, "b": 0}])
def test_the_largest_batch(start, limits):
    asked = []

    def tried(batch):
        assert batch not in asked, "a batch is recorded once"
        asked.append(batch)
        return {name: batch <= limit for name, limit in limits.items()}

    found = search(start, tried)
    for name, limit in limits.items():
        assert found[name] <= limit
        assert limit - found[name] <= max(1, 0.06 * limit), "to six in a hundred, or to one"
        assert found[name] == 0 or found[name] in asked, "it was really run"
    assert len(asked) < 25


def test_bad_usage(tmp_path, capsys):
    assert main([str(tmp_path), "no/such/cell"]) == 2
    assert "no cell is called" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_cell_whose_captures_are_there(tmp_path, monkeypatch):
    """A hole below a larger request.

    Twice as much, 288 MiB alive at most, fits whoever gives all of the hole back, and not expandable segments, which
    give back handles of 20 MiB that are free as a whole.
    """
    monkeypatch.setattr(largest, "CONTEXT", 0)
    monkeypatch.setattr(largest, "FULL", (CAPTURED,))
    for batch in (1, 2, 3):
        captured(tmp_path, replace(CAPTURED, batch=batch), scale=batch)
    out = tmp_path / "largest.json"
    assert main([str(tmp_path), CAPTURED.name, "--card", "300MiB", "--json", str(out)]) == 0
    (one,) = json.loads(out.read_text())["largest"]
    assert one["tried"] == [1, 2, 3]
    assert {name: found["batch"] for name, found in one["largest"].items()} == {
        "native": 2, "expandable": 1, "gmlake": 2, "movie": 2, "movie-lean": 2,
    }  # fmt: skip
