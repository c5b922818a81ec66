import pytest

from movie.evaluate.comparison import Run
from movie.evaluate.replay import BOUND, ReplayResult
from movie.report.terminal import driver_time
from movie.report.verdict import report, verdict

GIB = 2**30


def run(allocator="movie", reserved=20 * GIB, requested=19 * GIB, **more):
    result = ReplayResult(
        allocator=allocator,
        options={},
        memory=None,
        completed="failed_at" not in more,
        peak_requested=requested,
        peak_reserved=reserved,
        **more,
    )
    return Run(allocator, 0, 1000, result)


NATIVE = run("native", 38 * GIB)


@pytest.mark.parametrize(
    ("one", "native", "text"),
    [
        (run(), None, "fits in 20 GiB"),
        (run(), NATIVE, "fits in 20 GiB, 18 GiB less than native"),
        (run(reserved=40 * GIB), NATIVE, "fits in 40 GiB, 2 GiB more than native"),
        (run(reserved=38 * GIB + 1), NATIVE, "fits in 38.00 GiB, as native does"),
        (run(), run("native", failed_at=5), "fits in 20 GiB, where native runs out of memory"),
        (NATIVE, NATIVE, "fits in 38 GiB"),
        (run("native", retries=1), None, "fits in 20 GiB after flushing its cache once"),
        (run(retries=1234), None, "fits in 20 GiB after flushing its cache 1,234 times"),
        (run(BOUND, 19 * GIB), NATIVE, "fits in 19 GiB, the least that any allocator can need"),
        (run(BOUND, 19 * GIB, failed_at=5), NATIVE, "does not fit: at least 19 GiB are needed at a time"),
        (run(failed_at=639), NATIVE, "out of memory at 63 % of the trace"),
        (run(failed_at=0), NATIVE, "out of memory at 0 % of the trace"),
    ],
)
def test_a_run_in_one_sentence(one, native, text):
    assert verdict(one, native) == text


def test_why_is_one_line_without_the_words_said_before():
    assert report(run(failed_at=1, failure="out of memory: asked\nfor  too much")) == "asked for too much"
    assert report(run()) == ""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (78e-6, "78 µs"), (0.0021, "2.1 ms"), (0.3184, "318 ms"), (1.4449, "1.44 s"), (4321.5, "4,321.50 s")],
)
def test_driver_time_has_three_figures(seconds, text):
    assert driver_time(seconds) == text
