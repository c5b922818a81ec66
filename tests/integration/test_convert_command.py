"""`movie convert` as a user has it."""

import json

import pytest
from command_line import assert_one_line_error, movie, write_case


@pytest.fixture
def case(tmp_path):
    return write_case(tmp_path)


def facts(path):
    """What a replay says about the trace and about native on it, the path and the times of this machine left out."""
    document = json.loads(movie("replay", path, "-a", "native", "-a", "bound", "--json").stdout)
    document["trace"].pop("path")
    for entry in document["results"]:
        entry.pop("host_ns_per_event")
    return document


def test_a_case_survives_parquet_and_back(case, tmp_path):
    parquet, again = tmp_path / "trace.parquet", tmp_path / "again.case"
    result = movie("convert", case, parquet)
    assert result.returncode == 0, result.stderr
    assert movie("convert", parquet, again).returncode == 0
    assert parquet.read_bytes()[:4] == b"PAR1"
    assert facts(case) == facts(parquet) == facts(again)


def test_converting_over_a_file_replaces_it_whole(case, tmp_path):
    target = tmp_path / "trace.parquet"
    target.write_text("something else, and longer than nothing")
    assert movie("convert", case, target).returncode == 0
    assert facts(target) == facts(case)


def test_a_snapshot_keeps_its_replay(data_dir, tmp_path):
    path = data_dir / "snapshots" / "attention_tiny_from_empty.pickle"
    target = tmp_path / "trace.parquet"
    assert movie("convert", path, target).returncode == 0
    assert facts(target) == facts(path)
    assert "36 of 36 recorded addresses" in movie("replay", target, "-a", "native").stdout


def only(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("out.txt2", ["out.txt2", ".parquet", ".case"]),
        ("out", ["out", ".parquet", ".case"]),
        ("missing/out.parquet", ["missing/out.parquet"]),
        ("folder.parquet", ["folder.parquet"]),
    ],
)
def test_a_bad_target_is_one_line_and_leaves_nothing(case, tmp_path, target, parts):
    (tmp_path / "folder.parquet").mkdir()
    assert_one_line_error(movie("convert", case, tmp_path / target), *parts)
    assert only(tmp_path) == ["folder.parquet", "small.case"]


def test_bad_input_leaves_no_file(tmp_path):
    bad = tmp_path / "bad.case"
    bad.write_text("# gpu-alloc-case 1\ncapacity none\nfree a\n")
    assert_one_line_error(movie("convert", bad, tmp_path / "out.parquet"), "bad.case", "line 3")
    assert_one_line_error(movie("convert", tmp_path / "missing", tmp_path / "out.parquet"), "missing")
    assert only(tmp_path) == ["bad.case"]


def test_a_file_of_two_devices_asks_which(data_dir, tmp_path):
    path = data_dir / "snapshots" / "synthetic_two_devices_map_unmap_oom.pickle"
    assert_one_line_error(movie("convert", path, tmp_path / "out.parquet"), "--device", "0", "1")
    assert only(tmp_path) == []
    assert movie("convert", path, tmp_path / "out.parquet", "--device", "1").returncode == 0
    document = json.loads(movie("replay", tmp_path / "out.parquet", "-a", "native", "--json").stdout)
    assert [entry["device"] for entry in document["results"]] == [1]


def test_arguments_are_needed(case):
    assert_one_line_error(movie("convert"), "IN")
    assert_one_line_error(movie("convert", case), "OUT")


def test_a_problem_of_minimalloc_asks_for_the_same(case, tmp_path):
    target = tmp_path / "problem.csv"
    assert movie("convert", case, target).returncode == 0
    assert target.read_text().splitlines()[0] == "id,lower,upper,size"
    before, after = facts(case), facts(target)
    for name in ("allocations", "peak_requested"):
        assert before["trace"][name] == after["trace"][name]


def test_a_log_survives_parquet(data_dir, tmp_path):
    path = data_dir / "traces" / "rmm_log_format_example.csv"
    target = tmp_path / "log.parquet"
    assert movie("convert", path, target).returncode == 0
    assert facts(target) == facts(path)
