"""`movie capture`: unmodified programs, recorded on a phantom card, however they end."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import assert_one_line_error, movie
from torch_build import require_cuda_torch

from movie.capture.assemble import traces_of
from movie.capture.program import Watching, watched
from movie.evaluate.fidelity import check_native
from movie.phantom.cards import find_card
from movie.phantom.environment import phantom_environment
from movie.phantom.process import Output
from movie.phantom.settings import PhantomSettings
from movie.trace import Action, Trace, read_trace

pytestmark = pytest.mark.slow  # each test starts PyTorch at least once

TRAINING = """
    import torch
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(4):
        model(torch.randn(64 + step, 1024, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == 1:
            torch.empty(2**26, device="cuda")
            torch.cuda.empty_cache()
    print("trained")
"""
A_MEBIBYTE = "import sys, os, torch\nblock = torch.zeros(2**20, dtype=torch.uint8, device='cuda')\n"


@pytest.fixture(autouse=True)
def _needs_torch():
    require_cuda_torch()


def write_program(folder: Path, text: str) -> Path:
    path = folder / "program.py"
    path.write_text(textwrap.dedent(text))
    return path


def capture(folder: Path, program: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Records a program as `trace.parquet` in the folder."""
    script = write_program(folder, program)
    command = ("capture", "--device", "a100-80", *options, "-o", folder / "trace.parquet", "--", sys.executable, script)
    return movie(*command, **environment)


def captured(folder: Path, program: str, *options: str, **environment: str) -> Trace:
    """The trace of a program that is to succeed."""
    result = capture(folder, program, *options, **environment)
    assert result.returncode == 0, result.stderr[-4000:]
    return trace_in(folder)


def trace_in(folder: Path) -> Trace:
    (trace,) = read_trace(folder / "trace.parquet")
    return trace


def phases(trace: Trace) -> list[str]:
    """Ours, in order; torch's own annotations are there too."""
    rows = trace.phase[trace.action == Action.MARK]
    return [name for name in (trace.phases[row] for row in rows) if name.islower() and " " not in name]


def test_an_unmodified_program(tmp_path):
    result = capture(tmp_path, TRAINING)
    assert result.returncode == 0, result.stderr[-4000:]
    assert result.stdout == "trained\n"
    assert "is a phantom" in result.stderr
    assert "4 steps" in result.stderr
    trace = trace_in(tmp_path)
    assert trace.complete
    assert trace.warnings == ()
    assert not len(trace.start)
    assert phases(trace) == 4 * ["backward", "forward", "optimizer", "step"]
    assert check_native(trace).exact
    assert trace.header["card"] == "NVIDIA A100-SXM4-80GB"
    assert trace.header["steps"] == "4"
    assert trace.header["torch"]


def test_empty_cache_stands_where_it_was_called(tmp_path):
    trace = captured(tmp_path, TRAINING)
    (call,) = np.flatnonzero(trace.action == Action.EMPTY_CACHE)
    assert trace.action[call + 1] == Action.SEGMENT_FREE
    before = [trace.phases[row] for row in trace.phase[:call][trace.action[:call] == Action.MARK]]
    assert before.count("step") == 2


def test_empty_cache_that_frees_nothing_is_in_the_trace(tmp_path):
    program = """
        import torch
        first = torch.zeros(2**20, device="cuda")
        torch.cuda.empty_cache()
        torch.accelerator.empty_cache()
        second = torch.zeros(2**20, device="cuda")
    """
    actions = [action for action in captured(tmp_path, program).action if action in (Action.ALLOC, Action.EMPTY_CACHE)]
    assert actions == [Action.ALLOC, Action.EMPTY_CACHE, Action.EMPTY_CACHE, Action.ALLOC]


def test_expandable_segments(tmp_path):
    trace = captured(tmp_path, TRAINING, "--allocator", "expandable")
    assert (trace.action == Action.SEGMENT_MAP).any()
    assert not (trace.action == Action.SEGMENT_ALLOC).any()
    assert trace.settings["expandable_segments"] is True


def test_other_settings_of_the_allocator_stay(tmp_path):
    setting = "max_split_size_mb:200,expandable_segments:True"
    trace = captured(tmp_path, TRAINING, "--allocator", "native", PYTORCH_CUDA_ALLOC_CONF=setting)
    assert trace.settings["max_split_size"] == 200 << 20
    assert trace.settings["expandable_segments"] is False


STREAMS = """
    import random, torch
    random.seed(0)
    streams = [torch.cuda.Stream() for _ in range(3)]
    kept = []
    for _ in range(200):
        block = torch.empty(random.randint(2**10, 2**22), device="cuda")
        stream = random.choice(streams)
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            kept.append(block * 2)
        block.record_stream(stream)
        kept = kept[-5:]
        del block
"""


def test_the_same_seed_gives_the_same_trace_and_another_differs_in_completions(tmp_path):
    def run(name: str, seed: int) -> Trace:
        folder = tmp_path / name
        folder.mkdir()
        return captured(folder, STREAMS, "--lag", "40", "--seed", str(seed))

    first, again, other = run("first", 7), run("again", 7), run("other", 8)
    for column in ("action", "id", "bytes", "stream", "pool", "address", "phase"):
        assert np.array_equal(getattr(first, column), getattr(again, column)), column
    assert set(first.stream.tolist()) == {0, 1, 2, 3}

    def requests(trace: Trace) -> list[list[int]]:
        rows = np.isin(trace.action, (Action.ALLOC, Action.FREE_REQUESTED, Action.EMPTY_CACHE))
        return [getattr(trace, column)[rows].tolist() for column in ("action", "id", "bytes", "stream", "pool")]

    assert requests(first) == requests(other)
    assert not np.array_equal(first.action, other.action), "completions come at other times"
    delayed = np.flatnonzero(first.action == Action.FREE_REQUESTED)
    delayed = delayed[delayed + 1 < len(first)]
    assert (first.action[delayed + 1] != Action.FREE_COMPLETED).any(), "the card lags"


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("raise ValueError('spoiled')", 1),
        ("sys.exit(7)", 7),
        ("os._exit(5)", 5),
        ("os.kill(os.getpid(), 15)", 143),
        ("os.kill(os.getpid(), 1)", 129),
        ("os.kill(os.getpid(), 9)", 137),
    ],
)
def test_a_program_that_fails(tmp_path, ending, code):
    result = capture(tmp_path, A_MEBIBYTE + ending)
    assert result.returncode == code
    if code == 137:  # ended on the spot: there is nothing to write
        assert "signal 9" in result.stderr.splitlines()[-1]
        assert not (tmp_path / "trace.parquet").exists()
        return
    assert ("spoiled" in result.stderr) == (code == 1), "what the program writes is visible"
    trace = trace_in(tmp_path)
    assert trace.allocations == 1
    assert not trace.complete
    assert f"exit code {code}" in trace.warnings[0]


@pytest.mark.parametrize("ending", ["sys.exit(0)", "os._exit(0)"])
def test_a_program_that_ends_early_on_purpose(tmp_path, ending):
    assert captured(tmp_path, A_MEBIBYTE + ending).complete


# The last backward's thread gets no time of the processor until the program's main thread wants it to.
LAST_LINE_IS_BACKWARD = """
    import os, pathlib, torch
    weight = torch.ones(100, device="cuda", requires_grad=True)
    (weight * 2).sum().backward()
    cpu = {min(os.sched_getaffinity(0))}
    os.sched_setaffinity(0, cpu)
    (worker,) = [t for t in pathlib.Path("/proc/self/task").iterdir() if "pt_autograd" in (t / "comm").read_text()]
    os.sched_setaffinity(int(worker.name), cpu)
    os.sched_setscheduler(int(worker.name), os.SCHED_IDLE, os.sched_param(0))
    (weight * 2).sum().backward()
"""


@pytest.mark.parametrize("history", [True, False])
def test_a_program_may_end_right_after_a_backward(tmp_path, history):
    """Else a search for the smallest card would take some cards for too small."""
    script = write_program(tmp_path, LAST_LINE_IS_BACKWARD)
    watching = Watching(PhantomSettings(find_card("h100")), history=history, output=Output.NOWHERE)
    for _ in range(4):  # without the wait about two of three abort
        with watched([sys.executable, str(script)], watching) as ended:
            assert ended.exit_code == 0


def test_out_of_memory(tmp_path):
    result = capture(tmp_path, A_MEBIBYTE + "torch.zeros(2**31, device='cuda')", "--memory", "4GiB")
    assert result.returncode == 1
    assert "OutOfMemoryError" in result.stderr
    trace = trace_in(tmp_path)
    assert trace.action[-1] == Action.OOM
    assert not trace.complete
    assert "ran out of memory" in trace.warnings[0]
    assert trace.header["out of memory"] == "1"


def test_what_was_there_stays_if_there_is_no_trace(tmp_path):
    (tmp_path / "trace.parquet").write_text("dear to somebody")
    result = capture(tmp_path, "import sys; sys.exit(3)")
    assert result.returncode == 3
    assert "no trace is written" in result.stderr
    assert (tmp_path / "trace.parquet").read_text() == "dear to somebody"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program.py", "trace.parquet"]


WAITING = """
    import subprocess, sys, time, torch
    block = torch.zeros(2**20, device="cuda")
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    print(child.pid, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_program_leaves_no_process_and_no_half_of_a_trace(tmp_path, number):
    script = write_program(tmp_path, WAITING)
    command = [sys.executable, "-m", "movie", "capture", "--device", "a100-80", "-o", "trace.parquet"]
    with subprocess.Popen(
        [*command, "--", sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as process:
        assert process.stdout is not None
        grandchild = int(process.stdout.readline())
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert not Path(f"/proc/{grandchild}").exists(), "a process was left behind"
    trace = trace_in(tmp_path)
    assert not trace.complete
    assert trace.allocations == 1
    assert f"exit code {128 + number}" in trace.warnings[0] or "interrupted" in trace.warnings[0]
    assert str(tmp_path / "trace.parquet") in errors or "trace.parquet" in errors
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".part"]


def test_after_so_many_steps(tmp_path):
    program = TRAINING.replace("for step in range(4)", "for step in range(10**9)")
    trace = captured(tmp_path, program, "--steps", "3")
    assert trace.header["steps"] == "3"
    assert phases(trace).count("step") == 3


def test_a_program_that_records_for_itself(tmp_path):
    program = f"""
        import pickle, torch
        torch.cuda.memory._record_memory_history(max_entries=5)
        {A_MEBIBYTE.splitlines()[1]}
        torch.cuda.memory._dump_snapshot({str(tmp_path / "own.pickle")!r})
        torch.cuda.memory._record_memory_history(enabled=None)
        more = [torch.zeros(2**20, device="cuda") for _ in range(20)]
    """
    trace = captured(tmp_path, program)
    assert trace.allocations == 21
    own = (tmp_path / "own.pickle").read_bytes()
    assert b"program.py" in own, "its own snapshot has the stack frames that it asked for"


def test_peaks_count_although_the_program_resets_them(tmp_path):
    program = """
        import torch
        torch.zeros(2**28, dtype=torch.uint8, device="cuda")
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        small = torch.zeros(2**20, device="cuda")
    """
    assert captured(tmp_path, program).header["peak reserved"] == str(2**28)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_data_loader_workers_are_left_alone(tmp_path, method):
    program = f"""
        import torch
        class Numbers(torch.utils.data.Dataset):
            def __len__(self): return 8
            def __getitem__(self, index): return torch.full((1024,), float(index))
        if __name__ == "__main__":
            total = torch.zeros(1024, device="cuda")
            loader = torch.utils.data.DataLoader(Numbers(), 2, num_workers=2, multiprocessing_context="{method}")
            for batch in loader:
                total += batch.cuda().sum(0)
    """
    trace = captured(tmp_path, program)
    assert trace.complete
    assert trace.warnings == ()


def test_another_sitecustomize_still_runs(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text("import builtins\nbuiltins.THEIRS = 1\n")
    captured(tmp_path, A_MEBIBYTE + "assert THEIRS == 1", PYTHONPATH=str(other))


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--device", "a100-90"], ["a100-90", "did you mean", "a100-80"]),
        (["--memory", "100MiB"], ["100 MiB", "context", "520 MiB"]),
        (["--allocator", "mine"], ["mine", "native", "expandable"]),
        (["-o", "trace.pickle"], ["trace.pickle", ".parquet"]),
        (["-o", "/nowhere/trace.parquet"], ["/nowhere"]),
        (["-o", "/proc/trace.parquet"], ["/proc/trace.parquet", "cannot be written"]),
        (["--lag", "soon"], ["--lag", "soon", "launches"]),
    ],
)
def test_bad_options(options, parts):
    assert_one_line_error(movie("capture", "--device", "h100", *options, "--", sys.executable, "-c", ""), *parts)


def test_an_output_that_cannot_be_written_is_known_before_the_program_runs(tmp_path):
    (tmp_path / "trace.parquet").mkdir()
    assert_one_line_error(capture(tmp_path, "print('began')"), "trace.parquet", "not a regular file")


def test_a_program_that_handles_being_ended_does_so(tmp_path):
    program = A_MEBIBYTE + "import signal; signal.signal(15, lambda *_: sys.exit(9)); os.kill(os.getpid(), 15)"
    result = capture(tmp_path, program)
    assert result.returncode == 9
    assert trace_in(tmp_path).allocations == 1


def test_processes_that_it_forks_are_ended_as_without_movie(tmp_path):
    program = f"""
        import signal
        {A_MEBIBYTE.splitlines()[0]}
        block = torch.zeros(2**20, dtype=torch.uint8, device="cuda")
        assert callable(signal.getsignal(15))
        child = os.fork()
        if child == 0:
            os._exit(int(signal.getsignal(15) is signal.SIG_DFL))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    """
    assert captured(tmp_path, program).allocations == 1


def test_a_script_without_python(tmp_path):
    script = write_program(tmp_path, "print('began')")
    result = movie("capture", "--device", "h100", "-o", tmp_path / "trace.parquet", "--", script)
    assert_one_line_error(result, "program.py", "is a Python script", "-- python")


@pytest.mark.parametrize("switch", ["-I", "-E", "-S"])
def test_a_python_that_cannot_be_watched(tmp_path, switch):
    script = write_program(tmp_path, A_MEBIBYTE)
    result = movie("capture", "--device", "h100", "--", sys.executable, switch, script)
    assert_one_line_error(result, switch, "leave it out")


def test_no_such_program():
    assert_one_line_error(movie("capture", "--device", "h100", "--", "no-such-program"), "no-such-program")


def test_a_program_that_uses_no_card(tmp_path):
    result = capture(tmp_path, "print('done')")
    assert result.returncode == 2
    assert result.stdout == "done\n"
    (line,) = result.stderr.splitlines()
    assert "without using a card" in line


def test_torch_without_cuda(tmp_path):
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("from . import version\n__version__ = '2.9.0+cpu'\n")
    (package / "version.py").write_text("cuda = None\n")
    result = capture(tmp_path, "import torch")
    assert_one_line_error(result, "2.9.0+cpu", "no CUDA build")


def test_torch_that_is_too_old(tmp_path):
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("from . import version\n__version__ = '2.5.1+cu124'\n")
    (package / "version.py").write_text("cuda = '12.4'\n")
    assert_one_line_error(capture(tmp_path, "import torch"), "2.5.1", "too old")


def test_an_allocator_that_keeps_no_history(tmp_path):
    result = capture(tmp_path, A_MEBIBYTE, PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
    assert result.returncode == 2
    assert "'cudaMallocAsync', which keeps no history" in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr


def test_a_program_that_chooses_its_allocator(tmp_path):
    program = "import os; os.environ['PYTORCH_CUDA_ALLOC_CONF'] = 'expandable_segments:True'\n" + A_MEBIBYTE
    trace = captured(tmp_path, program, "--allocator", "native")
    assert trace.header["allocator"] == "expandable"
    assert "chooses the allocator 'expandable', not 'native'" in trace.warnings[0]


def test_two_cards(tmp_path):
    program = """
        import torch
        for device in range(torch.cuda.device_count()):
            block = torch.zeros(2**20, dtype=torch.uint8, device=device)
            torch.cuda.empty_cache()
    """
    result = capture(tmp_path, program, "--count", "3")
    assert result.returncode == 0, result.stderr
    for device in range(3):
        (trace,) = read_trace(tmp_path / f"trace.{device}.parquet")
        assert trace.device == device
        assert trace.allocations == 1
        assert np.count_nonzero(trace.action == Action.EMPTY_CACHE) == 3, "it concerns all cards"


def test_the_machines_own_card(tmp_path, monkeypatch):
    """No phantom is asked for. Here it is a phantom that plays the machine's own card."""
    script = write_program(tmp_path, TRAINING)
    with phantom_environment(PhantomSettings(find_card("rtx3060"), quiet=True)) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        watching = Watching(None, output=Output.NOWHERE)
        with watched([sys.executable, str(script)], watching) as ended:
            (trace,) = traces_of(ended.recorded[0], ended, watching)
    assert trace.complete
    assert trace.header["phantom"] == "no"
    assert trace.header["card"] == "NVIDIA GeForce RTX 3060"


def test_environment_of_the_child_is_gone_afterwards(tmp_path):
    program = A_MEBIBYTE + "print(os.environ['MOVIE_CAPTURE_FOLDER'], os.environ['TRITON_LIBCUDA_PATH'])"
    result = capture(tmp_path, program)
    for folder in result.stdout.split():
        assert folder.startswith("/")
        deadline = time.monotonic() + 5
        while os.path.exists(folder) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not os.path.exists(folder)
