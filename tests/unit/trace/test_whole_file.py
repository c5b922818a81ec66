import os

import pytest

from movie.trace import TraceError
from movie.trace.output import whole_file


def test_a_file_is_whole(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with whole_file(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("existing", [None, b"old"])
def test_or_not_there(tmp_path, existing):
    path = tmp_path / "a"
    if existing is not None:
        path.write_bytes(existing)

    def half():
        with whole_file(path) as file:
            file.write(b"half")
            raise KeyError

    with pytest.raises(KeyError):
        half()
    assert os.listdir(tmp_path) == ([] if existing is None else ["a"])
    assert existing is None or path.read_bytes() == existing


def test_what_cannot_be_written(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "none" / "a", tmp_path, tmp_path / "file" / "a", "/dev/null"):
        with pytest.raises(TraceError, match="cannot be written"), whole_file(path):
            pass


def test_a_link_keeps_its_name(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with whole_file(tmp_path / "link") as file:
        file.write(b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"x"
