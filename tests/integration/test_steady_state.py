"""Where each iteration asks for the same, driver work ends with the third."""

import numpy as np
import pytest
from trace_builder import TraceBuilder

from movie.evaluate.steady import (
    ALLOCATORS,
    FIXED_SHAPES,
    LAGS,
    alike_from,
    iteration_ends,
    main,
    memory_calls,
)
from movie.trace import read_trace
from movie.trace.model import Action

MIB = 1 << 20


@pytest.fixture(scope="module", params=FIXED_SHAPES)
def recording(request, data_dir):
    [trace] = read_trace(data_dir / "recordings" / f"{request.param}.pickle.gz")
    ends = iteration_ends(trace)
    assert alike_from(trace, ends) <= 3
    assert len(ends) >= 5
    return trace, ends


@pytest.mark.parametrize("lag", LAGS)
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_no_call_after_the_third_iteration(recording, allocator, lag):
    trace, ends = recording
    calls = memory_calls(trace, allocator, lag, [ends[2], ends[-1]])
    assert calls[0] > 0
    assert calls[1] == 0


def loop(iterations: int, *, growing: bool = False):
    trace = TraceBuilder()
    for i in range(iterations):
        first = trace.alloc(20 * MIB + i * growing * 40 * MIB)
        second = trace.alloc(30 * MIB, stream=1)
        trace.free(first)
        third = trace.alloc(40 * MIB)
        trace.free(second)
        trace.free(third)
        trace.row(Action.MARK)
    return trace.build()


def named(trace):
    return type(trace)(**{**vars(trace), "phases": ("Optimizer.step#SGD.step",)})


def test_iterations_end_with_the_last_step_of_a_burst():
    trace = named(loop(5))
    assert iteration_ends(trace) == [9, 19, 29, 39, 49]
    assert alike_from(trace, iteration_ends(trace)) == 1
    assert alike_from(loop(5, growing=True), [9, 19, 29, 39, 49]) == 5


def test_a_capture_says_itself_where_iterations_end():
    # Its mark is of the whole step; torch's annotation stands where the optimizer's work begins.
    twice = loop(10)
    marks = np.flatnonzero(twice.action == Action.MARK)
    phase = twice.phase.copy()
    phase[marks[1::2]] = 1
    trace = type(twice)(**{**vars(twice), "phases": ("Optimizer.step#AdamW.step", "step"), "phase": phase})
    assert iteration_ends(trace) == [19, 39, 59, 79, 99]


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_calls_are_counted_by_iteration(allocator):
    calls = memory_calls(named(loop(5)), allocator, 0, [9, 19, 29, 39, 49])
    assert calls[0] > 0
    assert calls[3:] == [0, 0]
    assert any(memory_calls(named(loop(5, growing=True)), allocator, 0, [9, 19, 29, 39, 49])[3:])


def test_the_command(data_dir, capsys):
    path = data_dir / "recordings" / "hf_opt1.3b_N_fix.pickle.gz"
    assert main([str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:4] for line in lines] == [
        [path.name, allocator, str(lag), "steady"] for allocator in ALLOCATORS for lag in LAGS
    ]
    assert main([str(data_dir / "recordings" / "hf_opt1.3b_R_var.pickle.gz")]) == 2  # no two iterations are alike
    assert "three iterations" in capsys.readouterr().err
