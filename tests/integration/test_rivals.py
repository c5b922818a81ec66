"""`expandable` and `gmlake` against what was measured of the real ones."""

import pytest

from movie.evaluate import rivals


def disagreements(comparisons):
    return [found for found in comparisons if not found.good]


@pytest.mark.slow
def test_expandable_reserves_what_pytorch_reserved(data_dir):
    assert not disagreements(rivals.expandable_peaks(data_dir))


@pytest.mark.slow
def test_expandable_completes_on_the_cards_on_which_pytorch_did(data_dir):
    assert not disagreements(rivals.expandable_cards(data_dir))


@pytest.mark.slow
def test_expandable_works_as_hard_as_pytorch_on_smaller_cards(data_dir):
    assert not disagreements(rivals.expandable_under_pressure(data_dir))


@pytest.mark.slow
def test_gmlake_reserves_and_pays_what_the_release_did(data_dir):
    assert not disagreements(rivals.gmlake_on_an_ample_card(data_dir))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("allocator", "measured"),
    [("gmlake", rivals.GMLAKE_UNDER_PRESSURE), ("expandable", rivals.EXPANDABLE_MILLISECONDS)],
)
def test_an_iteration_on_a_full_card_costs_what_was_measured(data_dir, allocator, measured):
    assert not disagreements(rivals.under_pressure(data_dir, allocator, measured, 0.2))


def test_figures_that_differ_are_told():
    assert rivals.Comparison("", "", 10, 10.5, 1).good
    assert not rivals.Comparison("", "", 10, 11.5, 1).good
    assert not rivals.Comparison("", "", None, 11.5, 1).good
    assert not rivals.Comparison("", "", 10, None, float("inf")).good


def test_the_command_names_data_that_is_not_there(tmp_path, capsys):
    assert rivals.main([str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
