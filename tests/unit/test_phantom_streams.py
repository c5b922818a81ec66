"""The order of work on the phantom card, and when it is done."""

from phantom_calls import outcome, output


def test_without_lag_everything_is_done_at_once() -> None:
    lines = output("""
        one, passed = stream(), event()
        print(do("cudaEventQuery", passed))
        launch(one)
        ok("cudaEventRecord", passed, one)
        print(do("cudaEventQuery", passed), do("cudaStreamQuery", one))
    """)
    assert lines == ["0", "0 0"]


def test_an_event_passes_when_the_card_has_caught_up() -> None:
    lines = output(
        """
        one, two, passed = stream(), stream(), event()
        launch(one)
        ok("cudaEventRecord", passed, one)
        seen = []
        for _ in range(6):
            seen.append(do("cudaEventQuery", passed))
            launch(two)
        print(seen)
        """,
        lag=4,
    )
    assert lines == [str([600] * 4 + [0] * 2)]


def test_work_behind_an_event_comes_after_it() -> None:
    lines = output(
        """
        one, two, first, second = stream(), stream(), event(), event()
        launch(one)
        ok("cudaEventRecord", first, one)
        ok("cudaEventRecord", second, two)
        print(do("cudaEventQuery", second))
        ok("cudaStreamWaitEvent", two, first, 0)
        ok("cudaEventRecord", second, two)
        print(do("cudaEventQuery", second), do("cudaStreamQuery", two))
        ok("cudaEventSynchronize", second)
        print(do("cudaEventQuery", first), do("cudaStreamQuery", one), do("cudaStreamQuery", two))
        """,
        lag=-1,
    )
    assert lines == ["0", "600 600", "0 0 0"]


def test_waiting_for_one_stream_does_not_wait_for_later_work() -> None:
    lines = output(
        """
        one, two = stream(), stream()
        launch(one)
        for _ in range(50):
            launch(two)
        ok("cudaStreamSynchronize", one)
        print(do("cudaStreamQuery", one), do("cudaStreamQuery", two))
        ok("cudaDeviceSynchronize")
        print(do("cudaStreamQuery", two))
        """,
        lag=100,
    )
    assert lines == ["0 600", "0"]


def test_the_legacy_stream_waits_for_blocking_ones_and_they_for_it() -> None:
    lines = output(
        """
        blocking, free, passed = stream(0), stream(1), event()
        launch(blocking)
        ok("cudaEventRecord", passed, 0)
        print(do("cudaEventQuery", passed), do("cudaStreamQuery", free))
        ok("cudaDeviceSynchronize")
        launch(0)
        print(do("cudaStreamQuery", blocking), do("cudaStreamQuery", free), do("cudaStreamQuery", 1))
        ok("cudaStreamSynchronize", 2)
        print(do("cudaStreamQuery", 0))
        """,
        lag=-1,
    )
    assert lines == ["600 0", "600 0 600", "0"]


def test_a_program_that_only_asks_gets_its_answer_in_the_end() -> None:
    lines = output(
        """
        one, passed = stream(), event()
        launch(one)
        ok("cudaEventRecord", passed, one)
        asked = 0
        while do("cudaEventQuery", passed):
            asked += 1
        print(asked)
        """,
        lag=-1,
    )
    assert int(lines[0]) == 199


SEEDED = """
streams = [stream() for _ in range(4)]
seen = []
waiting = []
for step in range(400):
    launch(streams[step * 7 % 4])
    mark = event()
    ok("cudaEventRecord", mark, streams[step % 4])
    waiting.append(mark)
    seen.append(sum(do("cudaEventQuery", one) == 0 for one in waiting[-40:]))
print(seen)
"""


def test_lateness_is_drawn_from_the_seed_alone() -> None:
    first, again = (output(SEEDED, lag=20, seed=5) for _ in range(2))
    assert first == again
    assert first != output(SEEDED, lag=20, seed=6)
    assert first != output(SEEDED, lag=20)


def test_times_between_events() -> None:
    lines = output(
        """
        one, begin, end = stream(), event(0), event(0)
        time = c_float()
        ok("cudaEventRecord", begin, one)
        for _ in range(100):
            launch(one)
        ok("cudaEventRecord", end, one)
        print(do("cudaEventElapsedTime", byref(time), begin, end))
        ok("cudaDeviceSynchronize")
        ok("cudaEventElapsedTime", byref(time), begin, end)
        print(time.value > 0.5, do("cudaEventElapsedTime", byref(time), begin, event(2)))
        """,
        lag=10,
    )
    assert lines == ["600", "True 400"]


def test_functions_of_the_host_run_in_order_and_hold_up_what_is_behind() -> None:
    lines = output(
        """
        import threading
        one, other = stream(), stream()
        may_go, calls = threading.Event(), []
        Function = ctypes.CFUNCTYPE(None, c_void_p)

        @Function
        def slow(data):
            may_go.wait()
            calls.append(data)

        @Function
        def quick(data):
            calls.append(data)

        launch(one)
        ok("cudaLaunchHostFunc", one, slow, 7)
        ok("cudaLaunchHostFunc", one, quick, 8)
        print(do("cudaStreamQuery", one), calls)
        may_go.set()
        ok("cudaStreamSynchronize", one)
        print(calls, do("cudaStreamQuery", one))
        """
    )
    assert lines == ["600 []", "[7, 8] 0"]


def test_handles_that_are_none_are_refused() -> None:
    lines = output("""
        gone = stream()
        ok("cudaStreamDestroy", gone)
        print(do("cudaStreamSynchronize", gone), launch(gone), do("cudaEventRecord", event(), gone))
        print(do("cudaEventQuery", 0), do("cudaEventQuery", 4096), do("cudaStreamDestroy", 0))
        print(cuda.cudaLaunchKernel(c_void_p(1), Dim3(1, 1, 1), Dim3(1025, 1, 1), None, c_size_t(0), None))
        print(cuda.cudaLaunchKernel(c_void_p(1), Dim3(0, 1, 1), Dim3(32, 1, 1), None, c_size_t(0), None))
    """)
    assert lines == ["400 400 400", "400 400 400", "9", "9"]


def test_unmapping_under_queued_work_is_caught() -> None:
    code, errors = outcome(
        """
        place, page, one = get("cuMemAddressReserve", 2 * MIB, 0, 0, 0), create(2 * MIB), stream()
        ok("cuMemMap", place, 2 * MIB, 0, page, 0)
        assert may_touch(place, 2 * MIB) == 0
        ok("cudaMemsetAsync", place + 4096, 1, 4096, one)
        ok("cuMemUnmap", place, 2 * MIB)
        assert counters()["violations"] == 1
        assert do("cudaDeviceSynchronize") == 700
        assert do("cudaMalloc", byref(c_uint64()), 1) == 700  # the card is lost, as a real one is
        """,
        lag=-1,
    )
    assert code == 0, errors
    assert "queued work (cudaMemsetAsync) still touches the range" in errors
    assert "is not accessible to device 0 any more" in errors


def test_plain_frees_wait_for_the_card() -> None:
    lines = output(
        """
        one, place, pinned = stream(), get("cudaMalloc", 4096), get("cudaHostAlloc", 4096, 0)
        ok("cudaMemsetAsync", place, 1, 4096, one)
        print(do("cudaStreamQuery", one), do("cudaFree", place), do("cudaStreamQuery", one))
        place = get("cudaMalloc", 4096)
        ok("cudaMemcpyAsync", place, pinned, 4096, 1, one)
        print(do("cudaStreamQuery", one), do("cudaFreeHost", pinned), do("cudaStreamQuery", one))
        print(do("cudaDeviceSynchronize"), counters()["violations"])
        """,
        lag=-1,
    )
    assert lines == ["600 0 0", "600 0 0", "0 0"]
