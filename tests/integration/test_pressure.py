"""`movie` on nearly full cards: every recording completes without a retry."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from missing import missing
from recorded_files import names
from trace_builder import TraceBuilder

from movie.evaluate import pressure
from movie.evaluate.pressure import (
    COSTS,
    FACTORS,
    Cell,
    Work,
    card_of,
    cells_of,
    default_files,
    main,
    markdown,
    sums_kept,
)
from movie.evaluate.pressure_floor import compile_floor, floor_rows, floor_source, peak_of, run_floor
from movie.evaluate.recorded import in_parallel, iterations_of

MIB = 1 << 20
RECORDINGS = [name for name in names("recordings/*.gz", "gmlake-traces/*.xz") if "graph_step" not in name]


@pytest.mark.parametrize("name", RECORDINGS)
def test_completes_without_a_retry(data_dir, name):
    cells = cells_of(data_dir / name)
    assert [(cell.factor, cell.costs) for cell in cells] == [(factor, costs) for factor in FACTORS for costs in COSTS]
    for cell in cells:
        assert cell.kept, f"{cell.factor} x, {cell.costs}: {cell.retries} retries {cell.failure}"
        assert cell.peak_reserved <= cell.card


@pytest.mark.parametrize("name", RECORDINGS)
def test_breaks_no_invariant_where_it_is_tightest(data_dir, name):
    [cell] = cells_of(data_dir / name, factors=(1.005,), costs=("per-call",), validate=True)
    assert cell.kept, cell


# Cells in which the last quarter takes more than the floor and a millisecond an iteration. The goal is none.
ABOVE_THE_FLOOR = 12


@pytest.mark.slow
def test_less_driver_work_than_the_floor_in_sum(data_dir, tmp_path):
    source = floor_source(data_dir)
    if source is None:
        missing("the floor's source is not beside the recorded traces")
    cells_with_floor = partial(cells_of, floor=compile_floor(source, tmp_path))
    paths = [data_dir / name for name in RECORDINGS]
    cells = [cell for found in in_parallel(cells_with_floor, paths) for cell in found]
    assert sum(cell.floor is not None for cell in cells) == len(cells) == len(RECORDINGS) * len(FACTORS) * len(COSTS)
    assert all(cell.iterations for cell in cells)
    assert sums_kept(cells, "per-call")
    assert sums_kept(cells, "per-page")
    assert sum(cell.above for cell in cells) <= ABOVE_THE_FLOOR


def test_what_is_measured_is_every_run_but_one(data_dir, monkeypatch):
    monkeypatch.setenv("MOVIE_DATA", str(data_dir))
    assert sorted(str(path.relative_to(data_dir)) for path in default_files()) == RECORDINGS
    assert len(RECORDINGS) == 13 + 5


def test_the_card():
    assert card_of(1000 * MIB, 1.01) == 1010 * MIB + 64 * MIB


def two_streams():
    """40 MiB at the peak, and memory that moves from one stream to the other."""
    trace = TraceBuilder()
    for _ in range(5):
        first = trace.alloc(30 * MIB, stream=1)
        small = trace.alloc(10 * MIB, stream=2)
        trace.free(first)
        second = trace.alloc(25 * MIB, stream=2)
        trace.free(small)
        trace.free(second)
    return trace.build()


def test_rows_for_the_floor():
    trace = two_streams()
    rows = floor_rows(trace)
    assert rows.dtype == np.int64
    assert rows[:4].tolist() == [[1, 1, 30 * MIB, 1], [1, 2, 10 * MIB, 2], [0, 1, 30 * MIB, 1], [1, 3, 25 * MIB, 2]]
    assert peak_of(rows) == 40 * MIB


def test_the_floor_is_read_as_it_prints(data_dir, tmp_path):
    """Its figures for one recording, as they were published with it."""
    source = floor_source(data_dir)
    if source is None:
        missing("the floor's source is not beside the recorded traces")
    from movie.trace import read_trace  # noqa: PLC0415

    program = compile_floor(source, tmp_path)
    [trace] = read_trace(data_dir / "recordings" / "ds_opt1.3b_LR_w4.pickle.gz")
    rows = floor_rows(trace)
    run = run_floor(program, rows, card_of(peak_of(rows), 1.005), lag=1000, per_page=False)
    assert run.completed
    assert (run.views, run.edits, run.waits) == (2, 4, 1)
    assert not run_floor(program, rows, peak_of(rows) // 2, lag=1000, per_page=False).completed


def _cell(trace: str, factor: float, seconds: float, floor: float | None, *, completed: bool = True) -> Cell:
    work = Work(seconds, 1, 2, 3, 4)
    beside = None if floor is None else Work(floor, 10, 20, 30, 40)
    return Cell(trace, factor, 2**30, "per-call", completed, "", 0, 2**29, 0.5, work, beside)


def test_a_millisecond_an_iteration_is_allowed():
    assert iterations_of(Path("x/fsdp1_opt6.7b_R_var.bin.xz")) == 30
    assert iterations_of(Path("nowhere/run.pickle.gz")) is None
    cell = replace(_cell("a", 1.01, 0.5, 0.4905), iterations=40)
    assert not cell.above
    assert replace(cell, iterations=36).above
    assert not replace(cell, iterations=36, floor=None).above
    assert sums_kept([_cell("a", 1.01, 0.5, 0.5)], "per-call")
    assert not sums_kept([_cell("a", 1.01, 0.5, 0.4)], "per-call")
    more_waits = replace(cell, work=replace(cell.floor, waits=cell.floor.waits + 1))
    assert not sums_kept([more_waits], "per-call")


def test_the_table_adds_up_what_both_completed():
    lines = markdown([_cell("a", 1.01, 0.5, 0.25), _cell("b", 1.01, 0.125, None)]).splitlines()
    assert len({line.count("|") for line in lines}) == 1
    assert lines[2] == "| a | 1.01 x | 1.00 | 0 | 0.5000 | 1/2/3 | 4 | 0.2500 | 10/20/30 | 40 |"
    assert lines[3].endswith("| 0.1250 | 1/2/3 | 4 | fails |  |  |")
    assert lines[-1] == "| **sum** | all |  | 0 | 0.5000 | 1/2/3 | 4 | 0.2500 | 10/20/30 | 40 |"


def test_the_command(data_dir, monkeypatch, capsys):
    monkeypatch.setenv("MOVIE_DATA", str(data_dir))
    path = str(data_dir / "recordings" / "hf_opt1.3b_N_fix.pickle.gz")
    assert main([path]) == 0
    output = capsys.readouterr().out
    assert output.count("| hf_opt1.3b_N_fix | ") == len(FACTORS) * len(COSTS)
    assert output.splitlines()[-1] == "12 runs: 0 that did not complete, or needed a retry"


@pytest.mark.slow
def test_rivals_that_complete_take_more(data_dir):
    cells = cells_of(data_dir / "gmlake-traces" / "fsdp1_opt6.7b_R_var.bin.xz", rivals=pressure.RIVALS)
    assert len(cells) == len(FACTORS) * len(COSTS)
    assert not [cell for cell in cells if cell.ahead]


def test_a_rival_ahead_is_told(data_dir, monkeypatch, capsys):
    path = data_dir / "recordings" / "vis_sd15_R.pickle.gz"
    [cell] = cells_of(path, factors=(1.25,), costs=("per-call",), rivals=("expandable",))
    assert cell.ahead == ()
    cell = replace(cell, ahead=("expandable",))
    monkeypatch.setattr(pressure, "cells_of", lambda path, floor, rivals: [cell])
    assert main(["--rivals", str(path)]) == 0
    assert "- vis_sd15_R at 1.25 x, per-call: expandable" in capsys.readouterr().out


def test_the_command_fails_where_a_run_does(monkeypatch, capsys):
    cells = [_cell("a", 1.01, 0.5, None, completed=False)]
    monkeypatch.setattr(pressure, "cells_of", lambda path, floor, rivals: cells)
    assert main(["a.pickle"]) == 1
    captured = capsys.readouterr()
    assert "FAILS" in captured.out
    assert captured.err.startswith("a at 1.01 x")


def test_the_command_refuses_bad_input(tmp_path, capsys):
    bad = tmp_path / "none.pickle"
    assert main([str(bad)]) == 2
    assert main(["--floor", str(bad), str(bad)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
