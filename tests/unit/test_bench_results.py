"""What is said about results: races, targets with each miss named, and the page of the repository."""

import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest
from bench_cells import CAPTURED, captured

from movie.bench.figures import OURS, RIVALS
from movie.bench.measure import measure
from movie.bench.plot import picture
from movie.bench.pressure import lines, measured, races
from movie.bench.published import PUBLISHED
from movie.bench.render import document, page
from movie.bench.results import main, outcomes_of, published, results
from movie.bench.run import Outcome
from movie.bench.tables import curves, on_rivals_cards
from movie.bench.targets import verdicts

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """The rows of a cell whose operations are counted: a second of computing in each iteration."""
    folder = tmp_path_factory.mktemp("work")
    cell = replace(CAPTURED, framework="hf")
    place = captured(folder, cell)
    place.operations.write_text(str(round(0.4 * 312e12)))
    measure(place)
    found = place.known()
    assert found is not None
    return cell, found["rows"]


@pytest.fixture
def outcome(known):
    cell, rows = known
    return Outcome(cell, copy.deepcopy(rows))


def rows_by_allocator(outcome):
    return {row["allocator"]: row for row in outcome.rows}


def late(prices):
    return prices["iteration_seconds_last_quarter_at"]


def missed(outcomes):
    return {one.target: one.missed for one in verdicts(measured(outcomes)) if one.missed}


def test_races_on_a_rivals_card(outcome):
    rows = rows_by_allocator(outcome)
    for rival in RIVALS:
        for ours in OURS:
            (race,) = races(measured([outcome]), rival, ours, 0.4, late=False)
            assert race.theirs_seconds == rows[rival]["on_smallest_card"]["iteration_seconds"]
            assert race.seconds == rows[ours]["on_card_of"][rival]["iteration_seconds"]
            assert race.speed == pytest.approx(race.theirs_seconds / race.seconds)
            assert race.computing_seconds == pytest.approx(rows[ours]["device_seconds"])
            assert race.speed <= race.possible
    (slow,) = races(measured([outcome]), "native", "movie", 0.2, late=True)
    (fast,) = races(measured([outcome]), "native", "movie", 0.6, late=True)
    assert slow.theirs_seconds == pytest.approx(2, rel=0.1)
    assert fast.theirs_seconds == pytest.approx(2 / 3, rel=0.1)


def test_one_that_does_not_complete_on_a_rivals_card_loses(outcome):
    rows_by_allocator(outcome)["movie"]["on_card_of"]["native"] = None
    (race,) = races(measured([outcome]), "native", "movie", 0.4, late=True)
    assert (race.seconds, race.speed) == (None, 0)
    assert any(line.startswith("movie on native's") and "at least 0.00" in line for line in lines(measured([outcome])))
    assert any("does not complete" in text for texts in missed([outcome]).values() for text in texts)


@pytest.mark.parametrize(
    ("change", "target", "said"),
    [
        (lambda rows: rows["movie-lean"].update(utilization=0.9949), "movie-lean uses at least", "99.49%"),
        (
            lambda rows: rows["movie-lean"].update(utilization=0.8),
            "movie-lean uses no less",
            "80.00%, expandable 90.00%",
        ),
        (lambda rows: rows["movie"].update(smallest_card=1 << 30), "movie: smallest card", "1 GiB, allowed"),
        (lambda rows: rows["movie"]["on_smallest_card"].update(retries=3), "movie: smallest card", "3 retries"),
        (lambda rows: rows["movie"]["curve"][-1].update(completed=False), "movie completes", "not at 1.5 x, where"),
        (
            lambda rows: rows["movie"]["curve"][-1].update(iteration_seconds_last_quarter=9.0),
            "movie: driver calls and stalls",
            "most at 1.5 x: 8000.00 ms, native",
        ),
        (
            lambda rows: rows["movie"]["on_card_of"]["native"]["iteration_seconds_last_quarter_at"].update(
                {"0.4": 2.0}
            ),
            "movie: late iterations are no slower than native's",
            "slower, 2.0000 s, native",
        ),
        (lambda rows: rows["movie"].update(driver_seconds_last_quarter=0.1), "movie: driver calls take", "ms)"),
    ],
)
def test_each_miss_is_named_with_its_figure(outcome, change, target, said):
    before = missed([outcome])
    change(rows_by_allocator(outcome))
    after = missed([outcome])
    (name,) = [name for name in after if name.startswith(target)]
    texts = set(after[name]) - set(before.get(name, ()))
    assert all(outcome.cell.name in text for text in texts)
    assert any(said in text for text in texts), texts
    assert f"- **missed** {len(after[name])} times" in results(document([outcome]), None, "x")


def test_the_mean_speed_against_gmlake(outcome):
    cells = measured([outcome])
    targets = {one.target: one for one in verdicts(cells) if "gmlake's smallest card" in one.target}
    assert len(targets) == 4
    assert all(one.looked == 1 for one in targets.values())
    assert all("(possible: 1." in text for one in targets.values() for text in one.missed)
    assert any(one.missed for one in targets.values())
    for share in ("0.2", "0.4", "0.6"):
        theirs = rows_by_allocator(outcome)["gmlake"]["on_smallest_card"]
        late(theirs)[share] *= 2
    reached = [one for one in verdicts(cells) if one.target.startswith("movie: late iterations on gmlake")]
    assert [one.missed for one in reached] == [()]


def test_tables_and_pictures_of_scarce_memory(outcome):
    (row,) = on_rivals_cards([outcome]).rows
    assert len(row) == 1 + 3 * len(RIVALS)
    table = curves([outcome])
    assert table.headings[2:] == ("1.005 x", "1.01 x", "1.02 x", "1.05 x", "1.1 x", "1.25 x", "1.5 x")
    assert {row[1] for row in table.rows} == {*RIVALS, *OURS}
    assert picture(rows_by_allocator(outcome)).count("<path fill=") == len({*RIVALS, *OURS})
    assert "<script" not in page([outcome])
    assert picture(rows_by_allocator(outcome)) in page([outcome])


def test_a_cell_without_operations_has_no_picture_and_no_races(tmp_path):
    place = captured(tmp_path)
    measure(place)
    found = place.known()
    assert found is not None
    without = Outcome(CAPTURED, found["rows"])
    assert picture(rows_by_allocator(without)) == ""
    assert lines(measured([without])) == []
    assert "not looked at" in results(document([without]), None, "x")


def test_a_document_gives_its_outcomes_back(outcome):
    (again,) = outcomes_of(json.loads(json.dumps(document([outcome]))))
    assert again.cell == outcome.cell
    assert list(again.rows) == list(outcome.rows)


def test_cells_that_were_not_run_are_named(outcome):
    other = replace(outcome.cell, batch=77)
    text = results(document([outcome, Outcome(other, (), "not run")]), None, "x")
    assert f"- {other.name}: not run" in text
    assert "1 cells measured, 1 not." in text


def test_beside_what_was_published(outcome):
    one = PUBLISHED[2]
    for row in outcome.rows:
        row.update(workload=one.workload, framework="zero3", strategy=one.strategy, ranks=one.ranks)
    (row,) = published([outcome]).rows
    assert row[1:4] == ("64.0%", "75.0%", "89.0%")


def test_usage(capsys):
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err


def test_the_page_in_the_repository_is_what_its_results_make(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    first = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    command = next(line for line in first.splitlines() if line.startswith("Made by")).split("`")[1]
    assert command.startswith("python -m movie.bench.results ")
    assert main(command.split()[3:]) == 0
    assert capsys.readouterr().out == first
