"""`movie-lean` on runs of varying length: what it still maps late, beside a prototype that never edits a view."""

import pytest
from missing import missing
from recorded_files import names

from movie.evaluate import lean_work
from movie.evaluate.lean_work import LAGS, LeanWork, default_files, main, prototype_source, work_of
from movie.evaluate.pressure_floor import compile_floor

TRACES = names("recordings/*opt1.3b*_var.*.gz", "gmlake-traces/*opt1.3b*_var.*.xz")


@pytest.fixture(scope="module")
def prototype(data_dir, tmp_path_factory):
    source = prototype_source(data_dir)
    if source is None:
        missing("the prototype's source is not beside the recorded traces")
    return compile_floor(source, tmp_path_factory.mktemp("prototype"))


@pytest.mark.parametrize("name", TRACES)
def test_at_most_half_as_many_pages(data_dir, prototype, name):
    found = work_of(data_dir / name, prototype=prototype)
    assert [one.lag for one in found] == list(LAGS)
    for one in found:
        assert one.streams == 1
        assert one.prototype > 0
        assert one.kept, one


def test_what_is_measured(data_dir, monkeypatch):
    monkeypatch.setenv("MOVIE_DATA", str(data_dir))
    measured = {str(path.relative_to(data_dir)) for path in default_files()}
    assert len(TRACES) == 3
    assert set(TRACES) < measured


def test_limits():
    assert LeanWork("a", 0, 1, 50, 100).kept
    assert not LeanWork("a", 0, 1, 51, 100).kept
    assert LeanWork("a", 0, 2, 200, 100).kept


def test_the_command(data_dir, prototype, monkeypatch, capsys):
    monkeypatch.setenv("MOVIE_DATA", str(data_dir))
    path = str(data_dir / "recordings" / "hf_opt1.3b_R_var.pickle.gz")
    assert main([path]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]] == ["0", "1000"]
    monkeypatch.setattr(lean_work, "SHARE", -0.01)  # it may map none at all
    assert main([path]) == 1
    assert "MISSED" in capsys.readouterr().out


def test_the_command_refuses_bad_input(data_dir, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("MOVIE_DATA", str(data_dir))
    assert main(["--prototype", str(tmp_path / "none.cpp")]) == 2
    assert main([str(tmp_path / "none.pickle")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
