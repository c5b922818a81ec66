"""`movie demo` as a user has it."""

import re
import time

import pytest
from command_line import movie

from movie.demonstration import recordings, tight_card
from movie.trace import read_trace


@pytest.fixture(scope="module")
def demo():
    begin = time.monotonic()
    result = movie("demo")
    return result, time.monotonic() - begin


def test_it_takes_seconds_and_no_network(demo):
    result, seconds = demo
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert "\x1b" not in result.stdout
    assert seconds < 30


def test_each_recording_is_seen_on_two_cards(demo):
    output = demo[0].stdout
    assert len(re.findall(r"^ample card", output, re.MULTILINE)) == 2
    assert len(re.findall(r"^card of ", output, re.MULTILINE)) == 2
    assert output.count("OPT-1.3B") == output.count("OPT-6.7B") == 2
    for line in ("native model predicts 82,950 of 82,950", "native model predicts 56,292 of 56,292"):
        assert output.count(line) == 2


def test_it_ends_with_what_was_seen(demo):
    paragraphs = demo[0].stdout.strip().split("\n\n")
    said = " ".join(paragraphs[-1].split())
    first, second, bytes_checked = re.split(r"(?<=\.) (?=On |With real bytes)", said)
    # What PyTorch's allocator held when the runs were recorded, to the byte of the recording.
    assert "PyTorch's own allocator holds 38.75 GiB and 61.44 GiB" in first
    assert "movie" in first
    assert "PyTorch's own allocator runs out of memory in both" in second
    assert "movie completes" in second
    figures = re.search(r"of ([\d,]+) blocks .* ([\d,]+) were stitched .* ([\d,]+) checks", bytes_checked)
    blocks, stitched, checks = (int(figure.replace(",", "")) for figure in figures.groups())
    assert 0 < stitched < blocks <= checks
    assert "found what had been written" in bytes_checked


def test_the_recordings_are_small():
    for path in recordings():
        assert path.stat().st_size < 10**6
        (trace,) = read_trace(path)
        assert trace.complete
        assert len(trace.start) == 0


def test_a_tight_card_has_one_percent_more_and_64_mib():
    assert tight_card(100 * 2**30) == 101 * 2**30 + 64 * 2**20
