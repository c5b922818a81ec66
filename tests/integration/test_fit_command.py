"""`movie fit` as a user has it: the smallest card, the curve, the JSON contract, the pictures."""

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

import pytest
from command_line import SMALL_CASE_EVENTS, SMALL_CASE_PEAK, assert_one_line_error, movie, write_case
from test_replay_command import COUNT, DOCUMENT, NUMBER, assert_shape

MIB = 2**20
POINT = {
    "factor": NUMBER,
    "card": COUNT,
    "completed": bool,
    "peak_reserved": COUNT,
    "retries": COUNT,
    "driver_seconds": NUMBER,
    "driver_seconds_last_quarter": NUMBER,
    "driver_seconds_to_first_peak": NUMBER,
    "views": dict.fromkeys(("created", "edited", "reused", "evicted", "last_quarter"), COUNT),
    "stream_waits": COUNT,
    "stalled_rows": COUNT,
}
RESULT = {
    "allocator": str,
    "device": COUNT,
    "smallest_card": (int, type(None)),
    "monotone": bool,
    "fails_above": list,
    "retries_there": (int, type(None)),
    "ample_reserved": COUNT,
    "curve": list,
}


@pytest.fixture
def case(tmp_path):
    return write_case(tmp_path)


def fitted(*arguments, **environment):
    result = movie("fit", *arguments, "--json", **environment)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_json_has_the_fields_of_the_contract(case):
    document = fitted(case, "--curve")
    assert_shape(document, {"trace": DOCUMENT["trace"], "costs": str, "lag": COUNT, "results": list})
    assert document["trace"]["events"] == SMALL_CASE_EVENTS
    assert document["costs"] == "per-call"
    assert document["lag"] == 1000
    for entry in document["results"]:
        assert_shape(entry, RESULT, "result")
        assert [point["factor"] for point in entry["curve"]] == [1.005, 1.01, 1.02, 1.05, 1.1, 1.25, 1.5]
        for point in entry["curve"]:
            assert_shape(point, POINT, "point")
            assert abs(point["card"] - point["factor"] * SMALL_CASE_PEAK - 64 * MIB) < 1
    names = [entry["allocator"] for entry in document["results"]]
    assert names[0] == "native"
    assert names[-1] == "bound"
    native, bound = document["results"][0], document["results"][-1]
    # 144 MiB do: the hole of 64 MiB is given back for the 80 MiB. Ample, it is not: 208 MiB are held.
    assert (native["smallest_card"], native["retries_there"]) == (144 * MIB, 1)
    assert native["ample_reserved"] == 208 * MIB
    assert native["monotone"]
    # 1.005 x 144 + 64 MiB are more than 208: no retry.
    assert [point["retries"] for point in native["curve"]] == [0] * 7
    assert bound["smallest_card"] == SMALL_CASE_PEAK


def test_no_curve_unless_asked_for(case):
    document = fitted(case, "-a", "native")
    assert document["results"][0]["curve"] == []


def test_the_card_found_is_the_smallest(data_dir):
    """Checked with `movie replay`: the card does, and one page less does not."""
    path = data_dir / "snapshots" / "lm_fwd_fp32_200_from_empty.pickle"
    for entry in fitted(path, "-a", "native", "-a", "movie", "--no-validate")["results"]:
        assert entry["monotone"]
        for card, code in ((entry["smallest_card"], 0), (entry["smallest_card"] - 2 * MIB, 3)):
            result = movie("replay", path, "-a", entry["allocator"], "--memory", card, "--json", "--no-validate")
            assert result.returncode == code
        assert entry["retries_there"] is not None


def test_factors_lag_and_costs_are_taken(case):
    document = fitted(case, "-a", "native", "--factors", "1.5, 1.0625", "--lag", "never", "--costs", "per-page")
    assert (document["costs"], document["lag"]) == ("per-page", None)
    points = document["results"][0]["curve"]
    assert [point["card"] for point in points] == [(153 + 64) * MIB, (216 + 64) * MIB]
    assert points[1]["driver_seconds"] == pytest.approx(4 * 700e-6, rel=0.01)
    assert points[1]["driver_seconds_to_first_peak"] <= points[1]["driver_seconds"]


def test_points_that_fail_are_in_the_curve_and_are_no_failure(case):
    document = fitted(case, "-a", "native", "--factors", "0.5")
    (point,) = document["results"][0]["curve"]
    assert point["completed"] is False


def test_an_allocator_that_never_completes_ends_with_3(tmp_path):
    path = tmp_path / "huge.case"
    path.write_text(f"# gpu-alloc-case 1\ncapacity none\nalloc a {2**50} 0 0\n")
    result = movie("fit", path, "-a", "native", "--json")
    assert result.returncode == 3
    assert json.loads(result.stdout)["results"][0]["smallest_card"] is None
    table = movie("fit", path, "-a", "native", "--curve")
    assert table.returncode == 3
    assert "none" in table.stdout


def test_each_device_has_its_results(data_dir):
    path = data_dir / "snapshots" / "synthetic_two_devices_map_unmap_oom.pickle"
    found = [(e["device"], e["allocator"]) for e in fitted(path, "-a", "native", "-a", "bound")["results"]]
    assert found == [(0, "native"), (0, "bound"), (1, "native"), (1, "bound")]
    assert [e["device"] for e in fitted(path, "-a", "bound", "--device", "1")["results"]] == [1]


def test_the_table_holds_80_columns_without_colours_when_piped(case):
    result = movie("fit", case, "--curve")
    assert result.returncode == 0
    assert result.stderr == ""
    assert "\x1b" not in result.stdout
    lines = [line for line in result.stdout.splitlines() if str(case) not in line]
    assert max(map(len, lines)) <= 80
    for text in ("144 MiB", "208 MiB", "per-call", "1,000 rows", "native: driver time", "movie: driver time", "1.005"):
        assert text in result.stdout
    assert "bound: driver time" not in result.stdout


def test_the_picture_is_svg(case, tmp_path):
    target = tmp_path / "curve.svg"
    evil = tmp_path / "<b>&amp.case"
    evil.write_bytes(case.read_bytes())
    assert movie("fit", evil, "-a", "native", "-a", "movie", "--plot", target).returncode == 0
    root = xml.etree.ElementTree.parse(target).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = "".join(root.itertext())
    for text in ("native", "movie", "<b>&amp.case", "Modelled driver time of the whole run", "last quarter"):
        assert text in texts
    circles = root.findall(".//{http://www.w3.org/2000/svg}circle")
    assert len(circles) == 2 * 2 * 7  # charts, allocators, cards


def test_the_page_needs_nothing_from_elsewhere(case, tmp_path):
    target = tmp_path / "curve.html"
    assert movie("fit", case, "-a", "native", "--plot", target, "--factors", "0.5,1,2").returncode == 0
    text = target.read_text()
    assert "://" not in text
    assert "<script" not in text
    assert text.count("<svg") == 2
    assert "out of memory" in text
    assert "144 MiB" in text


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["-a", "nothing"], ["'nothing'", "native", "bound"]),
        (["--factors", "1.01,much"], ["--factors", "'much'"]),
        (["--factors", "0"], ["--factors", "'0'"]),
        (["--factors", "1/0"], ["--factors", "'1/0'"]),
        (["--factors", "-1"], ["--factors", "'-1'"]),
        (["--plot", "curve.png"], ["--plot", "'curve.png'", ".svg", ".html"]),
        (["--plot", "no/such/folder/a.svg"], ["no/such/folder/a.svg"]),
        (["--costs", "nothing"], ["'nothing'", "per-call", "per-page"]),
        (["--lag", "soon"], ["--lag", "'soon'", "never"]),
        (["--device", "7"], ["small.case", "7"]),
        (["--page", "2MiB", "-a", "native"], ["--page", "native"]),
        (["another.case"], ["another.case"]),
    ],
)
def test_a_bad_option_is_one_line(case, arguments, parts):
    assert_one_line_error(movie("fit", case, *arguments), *parts)


def test_a_bad_file_is_one_line_that_names_it(tmp_path):
    assert_one_line_error(movie("fit", tmp_path / "missing.pickle", "--json"), "missing.pickle")
    assert_one_line_error(movie("fit"), "TRACE")


def test_an_error_leaves_no_picture(tmp_path):
    target = tmp_path / "a.svg"
    assert_one_line_error(movie("fit", tmp_path / "missing.pickle", "--plot", target), "missing.pickle")
    assert list(tmp_path.iterdir()) == []


def test_control_c_ends_quietly(data_dir):
    path = data_dir / "recordings" / "hf_llama8b_LR_var.pickle.gz"
    process = subprocess.Popen(
        [sys.executable, "-m", "movie", "fit", path, "--curve"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ,
    )
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in errors
