"""`movie replay` as a user has it: exit codes, the JSON contract, one line an error, tables and pages."""

import html.parser
import json
import os
import pickle
import pty
import re
import signal
import subprocess
import sys
import time

import pytest
from command_line import SMALL_CASE_EVENTS, SMALL_CASE_PEAK, assert_one_line_error, movie, write_case

COUNT = int
NUMBER = (int, float)
DRIVER_CALLS = (
    *("create", "release", "map", "unmap", "set_access", "reserve", "free", "malloc", "mfree"),
    *("synchronize", "event_record", "stream_wait"),
)
RESULT = {
    "allocator": str,
    "device": COUNT,
    "completed": bool,
    "failed_at": (int, type(None)),
    "peak_reserved": COUNT,
    "utilization": NUMBER,
    "retries": COUNT,
    "driver": dict.fromkeys(DRIVER_CALLS, COUNT),
    "stalled_rows": COUNT,
    "driver_seconds": NUMBER,
    "driver_seconds_last_quarter": NUMBER,
    "driver_seconds_to_first_peak": NUMBER,
    "views": dict.fromkeys(("created", "edited", "reused", "evicted", "last_quarter"), COUNT),
    "unusable_at_peak": dict.fromkeys(("none", "hard", "soft", "stream", "pool", "rounding"), COUNT),
    "host_ns_per_event": NUMBER,
}
DOCUMENT = {
    "trace": {
        "path": str,
        "events": COUNT,
        "allocations": COUNT,
        "streams": COUNT,
        "devices": COUNT,
        "peak_requested": COUNT,
        "peak_allocated": COUNT,
        "start_live": COUNT,
        "complete": bool,
    },
    "costs": str,
    "memory": (int, type(None)),
    "results": list,
}


def assert_shape(value, shape, where="document"):
    if isinstance(shape, dict):
        assert set(value) == set(shape), where
        for key, part in shape.items():
            assert_shape(value[key], part, f"{where}.{key}")
    else:
        assert isinstance(value, shape), f"{where}: {value!r}"
        assert not (isinstance(value, bool) and shape in (COUNT, NUMBER)), where
        assert not isinstance(value, float) or value >= 0, where  # excludes NaN, too


@pytest.fixture
def case(tmp_path):
    return write_case(tmp_path)


def test_json_has_the_fields_of_the_contract(case):
    result = movie("replay", case, "--json")
    assert result.returncode == 0
    assert result.stderr == ""
    document = json.loads(result.stdout)
    assert_shape(document, DOCUMENT)
    for entry in document["results"]:
        assert_shape(entry, RESULT, "result")
    assert document["trace"] == {
        "path": str(case),
        "events": SMALL_CASE_EVENTS,
        "allocations": 4,
        "streams": 2,
        "devices": 1,
        "peak_requested": SMALL_CASE_PEAK,
        "peak_allocated": SMALL_CASE_PEAK,
        "start_live": 0,
        "complete": True,
    }
    assert document["costs"] == "per-call"
    assert document["memory"] is None
    names = [entry["allocator"] for entry in document["results"]]
    assert names[0] == "native"
    assert names[-1] == "bound"
    native, bound = document["results"][0], document["results"][-1]
    # 32 + 64 + 32 MiB, and a new segment for the 80 MiB that the hole cannot hold
    assert native["peak_reserved"] == 208 * 2**20
    assert native["driver"]["malloc"] == 4
    assert native["utilization"] == pytest.approx(144 / 208)
    assert bound["peak_reserved"] == SMALL_CASE_PEAK
    assert bound["utilization"] == 1
    assert sum(bound["driver"].values()) == 0


def test_a_card_too_small_ends_with_3_and_tells_where(case):
    result = movie("replay", case, "--memory", "140MiB", "--json")
    assert result.returncode == 3
    assert result.stderr == ""
    document = json.loads(result.stdout)
    assert document["memory"] == 140 * 2**20
    for entry in document["results"]:
        assert entry["completed"] is False
        assert 0 <= entry["failed_at"] < SMALL_CASE_EVENTS


def test_native_flushes_its_cache_on_a_card_that_just_fits(case):
    result = movie("replay", case, "-a", "native", "--memory", "144MiB", "--json")
    assert result.returncode == 0
    (entry,) = json.loads(result.stdout)["results"]
    assert entry["completed"]
    assert entry["retries"] == 1
    assert entry["driver"]["mfree"] == 1


def test_a_case_brings_its_capacity_and_an_option_replaces_it(tmp_path):
    case = write_case(tmp_path, capacity=str(140 * 2**20))
    assert json.loads(movie("replay", case, "--json").stdout)["memory"] == 140 * 2**20
    result = movie("replay", case, "--json", "--memory", "1GiB")
    assert result.returncode == 0
    assert json.loads(result.stdout)["memory"] == 2**30


def test_several_traces_are_one_document(case):
    result = movie("replay", case, case, "-a", "native", "--json")
    documents = json.loads(result.stdout)
    assert [document["trace"]["path"] for document in documents] == [str(case)] * 2


def test_the_table_holds_80_columns_without_colours_when_piped(case):
    result = movie("replay", case)
    assert result.returncode == 0
    assert result.stderr == ""
    assert "\x1b" not in result.stdout
    lines = [line for line in result.stdout.splitlines() if str(case) not in line]
    assert max(map(len, lines)) <= 80
    assert re.search(r"native +144 MiB +208 MiB +69\.2% +4 ", result.stdout)
    assert "fits in 208 MiB" in result.stdout
    assert "ample card" in result.stdout
    assert "per-call" in result.stdout
    assert "1,000 rows" in result.stdout


def test_the_table_tells_what_did_not_fit(case):
    result = movie("replay", case, "-a", "native", "--memory", "140MiB")
    assert result.returncode == 3
    assert "out of memory at" in result.stdout


def test_costs_and_lag_are_taken(case):
    cheap = json.loads(movie("replay", case, "-a", "native", "--json").stdout)["results"][0]["driver_seconds"]
    assert cheap == pytest.approx(4 * 700e-6, rel=0.01)
    result = movie("replay", case, "-a", "native", "--lag", "never", "--costs", "per-page")
    assert result.returncode == 0
    assert "per-page" in result.stdout
    assert "never completes" in result.stdout


class _Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.links = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "xlink:href")]


def test_the_page_needs_nothing_from_elsewhere(case, tmp_path):
    evil = tmp_path / "<b>&amp.case"
    evil.write_bytes(case.read_bytes())
    target = tmp_path / "page.html"
    assert movie("replay", evil, "--html", target).returncode == 0
    text = target.read_text()
    page = _Page()
    page.feed(text)
    assert page.links == []
    assert "script" not in page.tags
    assert "b" not in page.tags
    assert page.tags.count("svg") == 1
    assert "://" not in text
    assert "url(" not in text
    assert "208 MiB" in text
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["-a", "nothing"], ["'nothing'", "native", "bound"]),
        (["-a", "native:nothing=1"], ["'nothing'", "native", "tie"]),
        (["-a", "native:tie"], ["'tie'", "key=value"]),
        (["-a", "native:tie=nothing"], ["native:tie=nothing"]),
        (["--memory", "lots"], ["--memory", "'lots'", "80GiB"]),
        (["--memory", "-1GiB"], ["--memory"]),
        (["--memory", "0"], ["--memory"]),
        (["--page", "x"], ["--page", "'x'"]),
        (["-a", "native", "--page", "2MiB"], ["--page", "native"]),
        (["--costs", "nothing"], ["'nothing'", "per-call", "per-page"]),
        (["--lag", "soon"], ["--lag", "'soon'", "never"]),
        (["--lag", "-2"], ["--lag", "'-2'"]),
        (["--lag", "1.5"], ["--lag", "'1.5'"]),
        (["--device", "7"], ["small.case", "7"]),
        (["--seed", "x"], ["--seed"]),
        (["--nothing"], ["--nothing"]),
        (["--html", "no/such/folder/page.html"], ["no/such/folder/page.html"]),
    ],
)
def test_a_bad_option_is_one_line(case, arguments, parts):
    assert_one_line_error(movie("replay", case, *arguments), *parts)


def test_no_trace_is_bad_usage():
    assert_one_line_error(movie("replay"), "TRACE")


def _missing(folder):
    return folder / "missing.pickle"


def _directory(folder):
    return folder


def _empty(folder):
    path = folder / "empty.pickle"
    path.touch()
    return path


def _foreign(folder):
    path = folder / "letter.pickle"
    path.write_text("Dear reader,\n")
    return path


def _binary(folder):
    path = folder / "noise.pickle"
    path.write_bytes(bytes(range(256)) * 4)
    return path


def _truncated_case(folder):
    path = folder / "truncated.case"
    path.write_text("# gpu-alloc-case 1\ncapacity none\nalloc a 512 0\n")
    return path


@pytest.mark.parametrize("make", [_missing, _directory, _empty, _foreign, _binary, _truncated_case])
@pytest.mark.parametrize("as_json", [False, True])
def test_a_bad_file_is_one_line_that_names_it(tmp_path, make, as_json):
    path = make(tmp_path)
    assert_one_line_error(movie("replay", path, *(["--json"] if as_json else [])), str(path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_one_line(case):
    case.chmod(0)
    assert_one_line_error(movie("replay", case), str(case), "ermission")


def test_an_error_in_a_later_trace_leaves_no_half_document(case, tmp_path):
    target = tmp_path / "page.html"
    assert_one_line_error(movie("replay", case, _missing(tmp_path), "--json", "--html", target), "missing.pickle")
    assert not target.exists()


def test_a_reader_that_goes_away_is_no_error(case):
    process = subprocess.Popen(
        [sys.executable, "-m", "movie", "replay", case, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    process.wait(timeout=60)


def test_control_c_ends_quietly(tmp_path):
    long_case = tmp_path / "long.case"
    with long_case.open("w") as file:
        file.write("# gpu-alloc-case 1\ncapacity none\n")
        for i in range(200_000):
            file.write(f"alloc b{i} {512 * (i % 977 + 1)} 0 0\nfree b{i}\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "movie", "replay", *[long_case] * 20], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"Traceback" not in errors


def test_a_terminal_gets_colours_and_progress(case):
    leader, follower = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "movie", "replay", case, "-a", "native"],
        stdout=follower,
        stderr=follower,
        env=environment,
    )
    os.close(follower)
    output = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # how Linux says that the other side has closed
            break
        if not part:
            break
        output += part
    os.close(leader)
    assert process.wait(timeout=60) == 0
    assert b"\x1b[" in output
    assert b"fits in 208 MiB" in output


def test_each_device_has_its_results(data_dir):
    path = data_dir / "snapshots" / "synthetic_two_devices_map_unmap_oom.pickle"
    document = json.loads(movie("replay", path, "-a", "native", "-a", "bound", "--json").stdout)
    assert document["trace"]["devices"] == 2
    found = [(entry["device"], entry["allocator"]) for entry in document["results"]]
    assert found == [(0, "native"), (0, "bound"), (1, "native"), (1, "bound")]
    only = json.loads(movie("replay", path, "-a", "native", "--device", "1", "--json").stdout)
    assert [entry["device"] for entry in only["results"]] == [1]


def test_a_recording_has_the_peaks_of_its_index(data_dir):
    path = data_dir / "snapshots" / "attention_tiny_from_empty.pickle"
    result = movie("replay", path, "-a", "native", "--json")
    document = json.loads(result.stdout)
    assert document["trace"]["complete"] is True
    assert document["trace"]["allocations"] == 36
    table = movie("replay", path, "-a", "native").stdout
    assert "36 of 36 recorded addresses" in table


def _recorded(folder, **settings):
    """A snapshot of one segment and one allocation in it."""
    base = 0x7F0000000000
    value = {
        "segments": [
            {
                "device": 0,
                "address": base,
                "total_size": 20 << 20,
                "stream": 0,
                "segment_type": "large",
                "segment_pool_id": (0, 0),
                "is_expandable": False,
                "blocks": [
                    {"address": base, "size": 2 << 20, "requested_size": 2 << 20, "state": "active_allocated"},
                    {"address": base + (2 << 20), "size": 18 << 20, "requested_size": 0, "state": "inactive"},
                ],
            }
        ],
        "device_traces": [
            [
                {"action": "segment_alloc", "addr": base, "size": 20 << 20, "stream": 0},
                {"action": "alloc", "addr": base, "size": 2 << 20, "stream": 0},
            ]
        ],
        "allocator_settings": settings,
    }
    path = folder / "a.pickle"
    path.write_bytes(pickle.dumps(value))
    return path


@pytest.mark.parametrize(
    "settings",
    [
        {"max_split_size": 5},
        {"max_split_size": "plenty"},
        {"roundup_power2_divisions": {"1": 3}},
        {"garbage_collection_threshold": 7.0},
        {"large_segment_size": 1},
    ],
)
def test_settings_that_make_no_sense_are_one_line(tmp_path, settings):
    path = _recorded(tmp_path, **settings)
    assert_one_line_error(movie("replay", path), str(path), "cannot be replayed under native", next(iter(settings)))
    # Allocators that do not take PyTorch's settings are not concerned.
    other = movie("replay", path, "-a", "movie")
    assert other.returncode == 0, other.stderr
    assert "recorded addresses are not compared with the native model" in " ".join(other.stdout.split())


def test_good_settings_are_taken(tmp_path):
    result = movie("replay", _recorded(tmp_path, max_split_size=40 << 20))
    assert result.returncode == 0, result.stderr
    assert "native model predicts 1 of 1 recorded addresses" in result.stdout
