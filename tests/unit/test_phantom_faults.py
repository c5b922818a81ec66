"""Faults on request, and the accounts of the phantom."""

import json
from pathlib import Path

import pytest
from phantom_calls import outcome, output

THREE = """
for _ in range(3):
    print(do("cudaMalloc", byref(c_uint64()), 1), end=" ")
print(cuda.movie_phantom_used(0) // MIB, counters()["faults"])
"""


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        ("cudaMalloc:2", "0 2 0 4 1"),
        ("cudaMalloc:*", "2 2 2 0 3"),
        ("cudaMalloc:1:46,cudaMalloc:3", "46 0 2 2 2"),
        ("cudaFree:1", "0 0 0 6 0"),
    ],
)
def test_the_call_that_was_named_fails_and_changes_nothing(fault: str, line: str) -> None:
    assert output(THREE, MOVIE_PHANTOM_FAULT=fault) == [line]


def test_functions_of_the_driver_fail_too() -> None:
    lines = output(
        """
        place = get("cuMemAddressReserve", 4 * MIB, 0, 0, 0)
        page = create(2 * MIB)
        print([do("cuMemMap", place, 2 * MIB, 0, page, 0) for _ in range(2)])
        print(do("cuMemUnmap", place, 2 * MIB), do("cuMemUnmap", place, 2 * MIB))
        """,
        MOVIE_PHANTOM_FAULT="cuMemMap:1:999,cuMemUnmap:1",
    )
    assert lines == ["[999, 0]", "999 0"]


def test_calls_are_counted_and_priced(tmp_path: Path) -> None:
    path = tmp_path / "counters-%p.json"
    lines = output(
        """
        import os
        place, pages = get("cuMemAddressReserve", 8 * MIB, 0, 0, 0), [create(2 * MIB) for _ in range(4)]
        for at, page in enumerate(pages):
            ok("cuMemMap", place + 2 * MIB * at, 2 * MIB, 0, page, 0)
        assert may_touch(place, 8 * MIB) == 0
        launch()
        get("cudaMalloc", 2 * MIB)
        ok("cuMemUnmap", place, 8 * MIB)
        print(os.getpid())
        """,
        MOVIE_PHANTOM_COUNTERS=str(path),
        MOVIE_PHANTOM_COSTS="per-page",
    )
    written = json.loads(Path(str(path).replace("%p", lines[0])).read_text())
    assert written["calls"]["cuMemMap"] == 4
    assert (written["launches"], written["violations"]) == (1, 0)
    device = written["devices"][0]
    assert (device["used"], device["peak"]) == (10 << 20, 10 << 20)
    assert device["driver"]["set_access"] == 1
    microseconds = 2 + 4 * 29 + 4 * 2 + 4 * 38 + 700 + 4 * 34
    assert device["driver_seconds"] == pytest.approx(microseconds * 1e-6)


def test_calls_take_their_time_on_request() -> None:
    code = """
        import time
        begin = time.perf_counter()
        for _ in range(100):
            ok("cudaFree", get("cudaMalloc", 1))
        print(time.perf_counter() - begin)
    """
    assert float(output(code, MOVIE_PHANTOM_DELAYS="1")[0]) > 0.17
    assert float(output(code)[0]) < 0.17


def test_calls_that_concern_memory_are_logged(tmp_path: Path) -> None:
    code, errors = outcome('ok("cudaFree", get("cudaMalloc", 5))', MOVIE_PHANTOM_LOG="stderr")
    assert code == 0
    first, second = errors.splitlines()
    assert first.startswith("cudaMalloc 5 -> 0x")
    assert second == "cudaFree " + first.split()[-1]
    path = tmp_path / "log"
    output("create(2 * MIB)", MOVIE_PHANTOM_LOG=str(path))
    assert path.read_text() == "cuMemCreate 2097152 -> 1\n"
