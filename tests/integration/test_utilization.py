"""`movie-lean` needs hardly more than what is asked for, on every snapshot, recording and case."""

import pytest
from recorded_files import names

from movie.evaluate.utilization import GOAL, LAGS, Utilization, default_files, main, utilization_of

TRACES = names("snapshots/*", "recordings/*.gz", "cases/*.case")


@pytest.mark.parametrize("name", TRACES)
def test_peak_reserved(data_dir, name):
    found = utilization_of(data_dir / name)
    assert {one.lag for one in found} == set(LAGS)
    for one in found:
        assert one.kept, f"{one}: {one.excess / 2**20:+.1f} MiB over 1.005 x requested"
        assert one.lean >= one.requested  # nothing can be held in less


def test_what_is_measured_is_everything(data_dir, monkeypatch):
    monkeypatch.setenv("MOVIE_DATA", str(data_dir))
    assert sorted(str(path.relative_to(data_dir)) for path in default_files()) == sorted(TRACES)
    assert len(TRACES) >= 30 + 14 + 28


def test_limits():
    mib = 2**20
    assert Utilization("a", 0, 1000 * mib, 1036 * mib, None).kept
    assert not Utilization("a", 0, 1000 * mib, 1038 * mib, None).kept
    assert not Utilization("a", 0, 1000 * mib, 1010 * mib, 1008 * mib).kept
    assert Utilization("a", 0, 1000 * mib, 1008 * mib, 1008 * mib).kept
    assert Utilization("a", 0, 1000 * mib, 1021 * mib, None).excess == pytest.approx(GOAL)


def test_the_command_prints_a_line_a_replay(data_dir, capsys):
    assert main([str(data_dir / "cases" / "holes_around_one_live_block.case")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:6] == ["lag", "requested", "movie-lean", "native", "used", "excess"]
    assert lines[1].split() == ["0", "64.0", "64.0", "96.0", "100.0%", "-0.3", "holes_around_one_live_block.case"]
    assert lines[3].startswith("2 replays: 0 missed")


def test_the_command_refuses_what_it_cannot_read(tmp_path, monkeypatch, capsys):
    assert main([str(tmp_path / "none.pickle")]) == 2
    assert main([str(tmp_path)]) == 2
    monkeypatch.setenv("MOVIE_DATA", str(tmp_path))
    assert main([]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 3
