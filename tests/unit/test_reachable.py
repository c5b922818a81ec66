"""Programs that MOVie cannot get into are refused before they run."""

import sys

import pytest

from movie.errors import InputError
from movie.phantom.reachable import check_program


@pytest.mark.parametrize(
    "command",
    [
        ["python", "-I", "train.py"],
        ["/usr/bin/python3.12", "-uE", "-m", "train"],
        ["python3", "-X", "dev", "-S", "train.py"],
        ["python3", "-Wignore", "-I", "-c", "print()"],
    ],
)
def test_a_python_that_is_shut_off(command):
    with pytest.raises(InputError, match="leave it out"):
        check_program(command)


@pytest.mark.parametrize(
    "command",
    [
        ["python", "train.py", "-I"],
        ["python", "-m", "train", "-E"],
        ["python", "-c", "pass", "-S"],
        ["python", "-W", "I", "train.py"],
        ["python", "-X", "E", "-u", "train.py"],
        ["python", "-XE", "--check-hash-based-pycs", "default", "-b", "train.py"],
        ["python", "-", "-I"],
        ["python"],
        ["torchrun", "-I", "train.py"],
        [sys.executable, "train.py"],
    ],
)
def test_what_belongs_to_the_program_is_left_alone(command):
    check_program(command)


def test_a_script_without_its_interpreter(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"'train.py' is not there"):
        check_program(["train.py"])
    (tmp_path / "train.py").write_text("print()")
    with pytest.raises(InputError, match=r"'train.py' is a Python script.* -- python train.py"):
        check_program(["train.py", "--lr", "1"])
    (tmp_path / "train.py").chmod(0o755)
    check_program(["./train.py"])
