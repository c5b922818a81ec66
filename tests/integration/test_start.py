"""The way to the first peak costs `movie` no more than twice what it costs PyTorch's expandable segments."""

import pytest
from recorded_files import names

from movie.evaluate import start
from movie.evaluate.start import CARDS, COSTS, FACTOR, Start, main, starts_of, sums

RECORDINGS = names("recordings/*.gz")


@pytest.mark.slow
def test_the_sum_over_the_recordings(data_dir):
    found = [one for name in RECORDINGS for one in starts_of(data_dir / name)]
    assert len(found) == len(RECORDINGS) * len(CARDS) * len(COSTS)
    for costs in COSTS:
        assert all(one.movie is not None for one in found)
        movie, expandable = sums(found, "ample", costs)
        assert 0 < movie <= FACTOR * expandable


def test_sums_are_over_what_both_complete():
    found = [
        Start("a", "ample", "per-call", 1.5, 1.0),
        Start("b", "ample", "per-call", 0.5, None),
        Start("c", "ample", "per-call", 0.25, 0.5),
        Start("c", "ample", "per-page", 8.0, 8.0),
    ]
    assert sums(found, "ample", "per-call") == (1.75, 1.5)


def test_the_command(data_dir, monkeypatch, capsys):
    path = str(data_dir / "recordings" / "hf_opt1.3b_N_fix.pickle.gz")
    assert main([path]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 2 * len(CARDS) * len(COSTS)
    assert lines[1].split()[:2] == ["ample", "per-call"]
    monkeypatch.setattr(start, "FACTOR", 0.1)
    assert main([path]) == 1
    assert "MORE THAN" in capsys.readouterr().out


def test_the_command_refuses_what_it_cannot_read(tmp_path, capsys):
    assert main([str(tmp_path / "none.pickle")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
