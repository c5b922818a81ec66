"""The figures of a cell, their contract, and what is not done twice. No training run: the captures are there."""

import json

import pytest
from bench_cells import CAPTURED, MIB, REAL_RESERVED, REQUESTED, captured

from movie.bench.cells import Cell
from movie.bench.figures import ALLOCATORS
from movie.bench.iteration import PEAK, Iteration
from movie.bench.measure import measure
from movie.bench.render import document, markdown, page
from movie.bench.run import Outcome, run
from movie.bench.tables import summary
from movie.bench.work import place_of
from movie.evaluate.replay import ReplayResult
from movie.report.document import DRIVER_CALLS

CONTRACT = {
    "workload", "framework", "strategy", "ranks", "batch", "allocator", "peak_requested", "peak_reserved",
    "utilization", "smallest_card", "retries", "driver", "driver_seconds", "driver_seconds_last_quarter",
    "iteration_seconds",
}  # fmt: skip


@pytest.fixture
def rows(tmp_path):
    place = captured(tmp_path)
    measure(place)
    known = place.known()
    assert known is not None
    return {row["allocator"]: row for row in known["rows"]}


def test_the_fields_of_the_contract(rows):
    assert tuple(rows) == ALLOCATORS
    for row in rows.values():
        assert row.keys() >= CONTRACT
        assert set(row["driver"]) == set(DRIVER_CALLS)
        assert (row["workload"], row["framework"], row["strategy"]) == ("no-model", "compile", "N")
        assert row["iteration_seconds"] is None, "nobody counts this workload's operations"


def test_what_is_real_and_what_is_replayed(rows):
    for allocator, reserved in REAL_RESERVED.items():
        assert rows[allocator]["source"] == "run"
        assert rows[allocator]["peak_reserved"] == reserved, "what the run reserved, not what a model says"
        assert rows[allocator]["utilization"] == REQUESTED / reserved
    for allocator in ("gmlake", "movie", "movie-lean", "bound"):
        assert rows[allocator]["source"] == "replay"
        assert rows[allocator]["peak_reserved"] == rows[allocator]["replayed_reserved"]
    assert rows["native"]["replayed_reserved"] == 208 * MIB
    assert rows["bound"]["peak_reserved"] == REQUESTED
    assert rows["movie-lean"]["peak_reserved"] == REQUESTED, "the hole and 16 MiB more serve the last request"
    # Native flushes the hole and comes to its end on a card that cannot hold both at once.
    assert rows["native"]["smallest_card"] < 208 * MIB
    assert rows["native"]["on_smallest_card"]["retries"] == 1
    assert rows["native"]["host_relative"] == 1


def test_what_is_known_is_not_measured_again(tmp_path):
    place = captured(tmp_path)
    measure(place)
    written = place.figures.stat().st_mtime_ns
    told = []
    (outcome,) = run([CAPTURED], tmp_path, progress=lambda what, share: told.append(what))
    assert outcome.seconds == 0
    assert not told, "no process was started"
    assert len(outcome.rows) == len(ALLOCATORS)
    assert place.figures.stat().st_mtime_ns == written


def test_a_missing_figure_is_measured_from_the_captures_that_are_there(tmp_path):
    place = captured(tmp_path)
    before = place.capture("native").stat().st_mtime_ns
    (outcome,) = run([CAPTURED], tmp_path)
    assert outcome.failure == ""
    assert outcome.seconds > 0
    assert place.capture("native").stat().st_mtime_ns == before
    assert place.known() == {"rows": list(outcome.rows)}


def test_another_version_of_a_package_has_another_place(tmp_path, monkeypatch):
    before = place_of(tmp_path, CAPTURED)
    monkeypatch.setattr("movie.bench.work.versions", lambda: {"torch": "0.1"})
    assert place_of(tmp_path, CAPTURED).folder != before.folder


def test_a_cell_that_fails_leaves_the_others_alone(tmp_path):
    captured(tmp_path)
    broken = Cell("no-model", "no-framework", "N", 1, 2, 64, "fix", 3)
    bad, good = run([broken, CAPTURED], tmp_path, jobs=1)
    assert "no-framework" in bad.failure
    assert not bad.rows
    assert good.rows
    found = document([bad, good])
    assert [one["cell"] for one in found["failed"]] == [broken.name]
    assert len(found["cells"]) == len(ALLOCATORS)
    assert "Not measured" in markdown([bad, good])


def test_tables_and_documents(rows):
    outcomes = [Outcome(CAPTURED, tuple(rows.values()))]
    found = document(outcomes)
    assert found == json.loads(json.dumps(found))
    assert found["costs"] == "per-call"
    text = markdown(outcomes)
    assert "| no-model/compile/N/1x2/fix64x3 | 75.0% | 90.0% |" in text
    assert "Not measured" not in text
    assert "75.0%" in page(outcomes)
    (against_native,) = [line for line in summary(outcomes) if line.startswith("movie-lean against native")]
    assert "+25.00 points on average over 1 cells" in against_native
    assert "below it in 0" in against_native


def test_an_iteration():
    """Ten iterations of a second each, a thousand rows, a delay of fifty rows: half an iteration in all."""
    one = Iteration(operations=0.4 * PEAK, iterations=10, rows=1000)
    result = ReplayResult(
        "movie",
        {},
        None,
        True,
        driver_seconds=2.0,
        driver_seconds_last_quarter=0.25,
        stalled_rows=80,
        delayed_rows=50,
        delayed_rows_last_quarter=5,
    )
    assert one.device_seconds() == pytest.approx(1)
    assert one.device_seconds(0.2) == pytest.approx(2)
    assert one.seconds(result) == pytest.approx(1 + 0.2 + 0.05)
    assert one.late_seconds(result) == pytest.approx(1 + 0.1 + 0.02)
    assert one.seconds(result, 0.2) == pytest.approx(2 + 0.2 + 0.1), "rows take as long as what they stand for"
    assert one.stall_seconds_at_most(result) == pytest.approx(0.08)
