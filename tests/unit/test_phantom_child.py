"""The Python side of the phantom: names of cards, the environment of a child, its start and its end."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from movie.errors import InputError
from movie.phantom import real_card
from movie.phantom.cards import Card, card_names, find_card
from movie.phantom.environment import phantom_environment
from movie.phantom.process import Output, run_program
from movie.phantom.settings import PhantomSettings

GIB = 1 << 30


@pytest.mark.parametrize("name", ["a100-80", "A100-80", "a100-80g", "A100_80GB", "a100 80gb"])
def test_a_card_by_the_ways_to_write_it(name):
    card = find_card(name)
    assert card.name == "a100-80"
    assert card.title == "NVIDIA A100-SXM4-80GB"
    assert 79 * GIB < card.memory < 80 * GIB
    assert 0 < card.context < GIB


def test_every_card_is_whole():
    assert len(card_names()) >= 10
    for name in card_names():
        card = find_card(name)
        assert card.context < card.memory // 8, name


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("a100-81", "did you mean a100-80"),
        ("h1000", "h100"),
        ("", "known are a100-40"),
        ("zzz", "a file of properties"),
    ],
)
def test_an_unknown_card(name, part):
    with pytest.raises(InputError, match=part):
        find_card(name)


def test_a_card_from_a_file(tmp_path):
    path = tmp_path / "mine.card"
    path.write_text("# of mine\nname = My Card\nmemory = 1000000000 # bytes\ncontext = 1000\nmajor = 9\n")
    assert find_card(str(path)) == Card(str(path), "My Card", 10**9, 1000)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("memory\n", "mine.card:1"),
        ("name = x\nmemory = 5\n", "'context'"),
        ("name = x\nmemory = 5 GB\ncontext = 1", "5 GB"),
    ],
)
def test_a_broken_file_of_properties(tmp_path, text, part):
    path = tmp_path / "mine.card"
    path.write_text(text)
    with pytest.raises(InputError, match=part):
        find_card(str(path))
    with pytest.raises(InputError, match="cannot be read"):
        find_card(str(tmp_path / "missing.card"))


def test_settings_become_variables():
    card = find_card("h100")
    assert PhantomSettings(card).variables() == {
        "MOVIE_PHANTOM_DEVICE": "h100",
        "MOVIE_PHANTOM_COUNT": "1",
        "MOVIE_PHANTOM_LAG": "0",
        "MOVIE_PHANTOM_SEED": "0",
    }
    more = PhantomSettings(card, memory=5 * GIB, count=2, lag=-1, seed=7, quiet=True).variables()
    assert more["MOVIE_PHANTOM_MEMORY"] == str(5 * GIB)
    assert more["MOVIE_PHANTOM_LAG"] == "-1"
    assert more["MOVIE_PHANTOM_QUIET"] == "1"


def test_memory_too_small_for_the_context():
    with pytest.raises(InputError, match="a context alone takes"):
        PhantomSettings(find_card("h100"), memory=GIB // 4).check()


def test_the_environment_lasts_as_long_as_the_block():
    base = {"LD_PRELOAD": "/theirs.so", "LD_LIBRARY_PATH": "/theirs", "MOVIE_PHANTOM_LAG": "9", "KEPT": "1"}
    with phantom_environment(PhantomSettings(find_card("h100")), base) as environment:
        preloaded, theirs = environment["LD_PRELOAD"].split(":")
        assert theirs == "/theirs.so"
        folder, theirs = environment["LD_LIBRARY_PATH"].split(":")
        assert theirs == "/theirs"
        assert environment["KEPT"] == "1"
        assert environment["MOVIE_PHANTOM_LAG"] == "0", "of another phantom"
        for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
            assert os.path.samefile(Path(folder, name), preloaded)
    assert not Path(folder).exists()
    assert base["LD_PRELOAD"] == "/theirs.so"


def test_whoever_loads_the_driver_gets_the_library_that_is_there_already():
    code = """
        import ctypes
        driver = ctypes.CDLL("libcuda.so.1")
        here = ctypes.CDLL(None)
        address = lambda library: ctypes.cast(library.cuInit, ctypes.c_void_p).value
        assert address(driver) == address(here)
        copies = {line.split()[-1] for line in open("/proc/self/maps") if "movie_phantom" in line or "libcuda" in line}
        print(len(copies))
    """
    with phantom_environment(PhantomSettings(find_card("h100"))) as environment:
        result = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)], env=environment, capture_output=True, text=True, check=True
        )
    assert result.stdout == "1\n"
    assert result.stderr == "", "a process that only starts says nothing"


def test_a_real_card_is_seen_by_what_the_driver_shows(tmp_path, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(real_card, "_WSL", tmp_path / "none")
    monkeypatch.setattr(real_card, "_DRIVER", tmp_path / "gpus")
    assert not real_card.has_real_card()
    (tmp_path / "gpus" / "0000:01:00.0").mkdir(parents=True)
    assert real_card.has_real_card()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert not real_card.has_real_card(), "hidden on purpose"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(code)]


def test_exit_codes():
    assert run_program(["true"], os.environ) == 0
    assert run_program(python("raise SystemExit(7)"), os.environ) == 7
    assert run_program(python("import os; os.kill(os.getpid(), 9)"), os.environ) == 128 + 9
    with pytest.raises(InputError, match="no-such-program"):
        run_program(["no-such-program"], os.environ)


def test_where_it_writes(capfd):
    program = python("import sys; print('out'); print('err', file=sys.stderr)")
    run_program(program, os.environ)
    assert capfd.readouterr() == ("out\n", "err\n")
    run_program(program, os.environ, Output.NOWHERE)
    assert capfd.readouterr() == ("", "")
    run_program(program, os.environ, Output.TO_STDERR)
    out, err = capfd.readouterr()
    assert out == ""
    assert sorted(err.split()) == ["err", "out"]


def test_a_program_has_its_signals_as_usual():
    code = """
        import signal
        assert not signal.pthread_sigmask(signal.SIG_BLOCK, [])
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert run_program(python(code), os.environ) == 0
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_signals_are_passed_on():
    waiting = python("import time; time.sleep(60)")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        sender = threading.Timer(0.5, os.kill, (os.getpid(), number))
        sender.start()
        begun = time.monotonic()
        code = run_program(waiting, os.environ, Output.NOWHERE)
        assert code == 128 + number
        assert time.monotonic() - begun < 30


def test_an_interrupt_reaches_a_program_that_a_shell_runs():
    command = ["sh", "-c", 'sleep 60; exit "$?"']
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()
    assert run_program(command, os.environ) == 128 + signal.SIGINT
    assert time.monotonic() - begun < 30


STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(60)
"""
LEAVES_AN_ORPHAN = """
import subprocess, sys
left = subprocess.Popen([sys.executable, "-c", sys.argv[1]], start_new_session=True, stdout=subprocess.PIPE)
left.stdout.readline()
open(sys.argv[2], "w").write(str(left.pid))
"""


def test_processes_left_behind_are_ended_and_others_are_not(tmp_path):
    mine = subprocess.Popen(["sleep", "60"])
    # A process that a child of the program leaves behind, in a session of its own, deaf to polite requests.
    shell = 'exec 3>&1; "$0" -c "$1" "$2" "$3" >&3'
    command = ["sh", "-c", shell, sys.executable, LEAVES_AN_ORPHAN, STUBBORN, str(tmp_path / "pid")]
    assert run_program(command, os.environ) == 0
    orphan = int((tmp_path / "pid").read_text())
    assert not Path(f"/proc/{orphan}").exists()
    assert mine.poll() is None
    mine.kill()
    mine.wait()
