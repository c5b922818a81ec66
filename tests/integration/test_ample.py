"""On an ample card `movie` holds no more than PyTorch's own allocators."""

import pytest
from recorded_files import names

from movie.evaluate import ample
from movie.evaluate.ample import LAGS, Ample, ample_of, main, sums_kept

GIB = 1 << 30
RECORDINGS = names("recordings/*.gz")


@pytest.fixture(scope="module")
def found(data_dir):
    assert len(RECORDINGS) == 14
    return [one for name in RECORDINGS for one in ample_of(data_dir / name)]


@pytest.mark.slow
def test_each_recording(found):
    assert len(found) == len(LAGS) * len(RECORDINGS)
    for one in found:
        assert one.requested <= one.movie  # nothing can be held in less
        assert one.kept, f"{one}: limit {one.limit / GIB:.3f} GiB"


@pytest.mark.slow
def test_less_than_expandable_in_sum(found):
    assert sums_kept(found)


def test_limits():
    assert Ample("a", 0, 90, 102, 200, 100).kept
    assert not Ample("a", 0, 90, 103, 200, 100).kept
    assert not Ample("a", 0, 90, 103, 100, 200).kept
    assert Ample("a", 1000, 90, 150, 150, 100).kept
    assert not Ample("a", 1000, 90, 151, 150, 100).kept
    assert sums_kept([Ample("a", 0, 90, 102, 200, 100), Ample("b", 0, 90, 98, 200, 100)])
    assert not sums_kept([Ample("a", 0, 90, 90, 200, 100), Ample("a", 1000, 90, 101, 200, 100)])


def test_the_command(data_dir, monkeypatch, capsys):
    path = str(data_dir / "recordings" / "hf_opt1.3b_N_fix.pickle.gz")
    assert main([path]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:5]] == ["0", "1000"] * 2
    assert lines[1].endswith("hf_opt1.3b_N_fix.pickle.gz")
    assert lines[-1] == "2 replays: 0 missed; in sum no more than expandable"
    monkeypatch.setattr(ample, "FACTOR", 0.99)
    assert main([path]) == 1
    assert "MISSED" in capsys.readouterr().out


def test_the_command_refuses_what_it_cannot_read(tmp_path, capsys):
    assert main([str(tmp_path / "none.pickle")]) == 2
    assert main([str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
