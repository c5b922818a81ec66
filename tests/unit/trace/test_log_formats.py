"""Logs of other programs: what each says, and what is refused."""

import json

import numpy as np
import pytest
from small_logs import BASE, LOGS, memory, profile
from small_snapshots import names

from movie.trace import Action, TraceError, read_trace, write_trace
from movie.trace.model import same


def parse(tmp_path, text, name="a"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    [trace] = read_trace(path)
    return trace


def fails(tmp_path, text, what, name="a"):
    with pytest.raises(TraceError) as caught:
        parse(tmp_path, text, name)
    assert what in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("form", ["stalloc", "rmm", "rows", "kineto"])
def test_all_logs_tell_of_the_same_blocks(tmp_path, form):
    trace = parse(tmp_path, LOGS[form]())
    first = len(trace.start)
    blocks = trace.action != Action.MARK
    blocks &= trace.action != Action.OOM
    expected = ["alloc 0"]
    for i in range(1, 8):
        expected += [f"alloc {i}", f"free_requested {i - 1}", f"free_completed {i - 1}"]
    found = [
        f"{Action(action).name.lower()} {block - first}"
        for action, block in zip(trace.action[blocks].tolist(), trace.id[blocks].tolist(), strict=True)
    ]
    assert found == expected
    allocs = trace.action == Action.ALLOC
    assert trace.bytes[allocs].tolist() == [512 * (i + 1) for i in range(8)]
    assert trace.stream[allocs].tolist() == ([0] * 8 if form == "kineto" else [0, 32] * 4)
    assert not trace.completions_recorded
    if form != "rows":
        assert trace.address[allocs].tolist() == [BASE + 4096 * i for i in range(8)]


def test_stalloc_markers_are_phases(tmp_path):
    trace = parse(tmp_path, LOGS["stalloc"]() + b"micro-batch : F\n")
    assert trace.phases == (
        "Iteration Index : 0",
        "micro-batch : F",
        "decoder.layers.0.mlp->MoELayer Layer : F-start",
        "Iteration Index : end",
    )
    assert trace.phase[trace.action == Action.MARK].tolist() == [0, 1, 2, 3, 1]


def test_a_stream_is_a_handle_of_64_bits(tmp_path):
    trace = parse(tmp_path, "1 0x7f00 512 0xffffffffffffffff\n1 0x7f01 1 0x55d0c0de1000\n")
    assert trace.stream.tolist() == [-1, 0x55D0C0DE1000]


RMM = "Thread,Time,Action,Pointer,Size,Stream\n"


def test_rmm_failures_and_times(tmp_path):
    trace = parse(
        tmp_path,
        RMM + "1,23:59:59.000002,allocate,0x10,512,0\n"
        "2,00:00:01:5,allocate failure,(nil),999,0x2\n1,00:00:02,free,0x10,512,0x2\n",
    )
    assert names(trace) == ["alloc 0", "oom -1", "use 0", "free_requested 0"]
    assert trace.bytes.tolist() == [512, 999, 0, 512]
    assert trace.stream.tolist() == [0, 2, 2, 0]
    day = 86_400_000_000
    assert trace.time_us.tolist() == [day - 999_998, day + 1_500_000, *[day + 2_000_000] * 2]
    assert trace.complete


def test_rmm_logs_put_together(tmp_path):
    trace = parse(tmp_path, RMM + "1,10:00:00,allocate,0x10,512,0\n\n" + RMM + "1,10:00:00,free,0x10,512,0\n")
    assert names(trace) == ["alloc 0", "free_requested 0", "free_completed 0"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("1 0x10 512 0\n1 0x10 512 0\n", "line 2: allocates a block that was allocated already"),
        ("1 0x10 512 0\n\n0 0x10 1024 0\n", "line 3: frees 1024 bytes of a block of 512"),
        ("1 0x10 512 0\n2 0x10 512 0\n", "line 2: '2 0x10 512 0' is no allocation"),
        ("1 0x10 512 0\n1 0x11 -5 0\n", "line 2: the size -5"),
        ("1 0x10 512 0\n1 pointer 5 0\n", "line 2: the pointer 'pointer' is not a number"),
        (b"1 0x10 512 0\n\xff\n", "byte 13: is not UTF-8"),
        (RMM, "has a header and no line after it"),
        (RMM + "1,10:15:07,allocate,0x10,512\n", "line 2: has 5 fields, not the 6"),
        (RMM + "1,10:15:07,resize,0x10,512,0\n", "line 2: the action 'resize' is none of allocate"),
        (RMM + "1,noon,allocate,0x10,512,0\n", "line 2: the time 'noon'"),
        (RMM + "1,10:15:07,allocate,0x10,5000000000000000000,0\n", "line 2: the size 5000000000000000000"),
        ("id,lower,upper,size\na,0,3\n", "line 2: has 3 fields where the header has 4"),
        ("id,lower,upper,size\na,0,3,4\na,0,3,4\n", "line 3: has a second buffer 'a'"),
        ("id,lower,upper,size\na,3,3,4\n", "line 2: 'upper' 3 is not from 4"),
        ("id,lower,upper,size,id\na,0,3,4,5\n", "line 1: has a column"),
        ("id,lower,upper,size,colour\na,0,3,4,5\n", "line 1: has a column 'colour' too many"),
        ("id,lower,upper,size,gaps\na,0,3,4,1-2\n", "line 2: has gaps"),
        ("id,lower,upper,size\na,0,x,4\n", "line 2: 'upper' 'x' is not a number"),
        ("1 5 100\n1 1 100\n", "line 2: the end 1 is not from 2"),
        ("1 5 100\n1 7\n", "line 2: has 2 fields"),
        ("1 5 100\n1 7 1e3\n", "line 2: the size '1e3' is not a number"),
        ("start end size\nstart end size\n", "line 2: the start 'start'"),
    ],
)
def test_what_lines_cannot_be(tmp_path, text, what):
    fails(tmp_path, text, what)


def test_minimalloc_names_its_capacity(tmp_path):
    text = "upper,id,size,lower\n3,b1,4,0\n9,b2,5,3\n9,b3,6,0\n"
    for name, capacity in (("input.12.csv", 12), ("a.csv", None), ("12", None), ("a.12.csv.old", None)):
        trace = parse(tmp_path, text, name)
        assert trace.capacity == capacity
        # At 3, b1 ends before b2 begins.
        assert names(trace) == [
            *("alloc 0", "alloc 1", "free_requested 0", "free_completed 0"),
            *("alloc 2", "free_requested 2", "free_completed 2", "free_requested 1", "free_completed 1"),
        ] or names(trace) == [
            *("alloc 0", "alloc 1", "free_requested 0", "free_completed 0"),
            *("alloc 2", "free_requested 1", "free_completed 1", "free_requested 2", "free_completed 2"),
        ]
        assert trace.bytes[trace.action == Action.ALLOC].tolist() == [4, 6, 5]


def test_a_trace_as_a_problem_of_minimalloc_and_back(tmp_path):
    for form in ("rmm", "stalloc", "rows"):
        trace = parse(tmp_path, LOGS[form]())
        write_trace(trace, tmp_path / "a.99999.csv")
        [again] = read_trace(tmp_path / "a.99999.csv")
        assert again.capacity == 99999
        blocks = ~np.isin(trace.action, (Action.MARK, Action.OOM))
        # What has not ended is ended at the end.
        rows = int(blocks.sum())
        for column in ("action", "id", "bytes"):
            assert getattr(trace, column)[blocks].tolist() == getattr(again, column)[:rows].tolist()
        assert set(again.action[rows:].tolist()) == {Action.FREE_REQUESTED, Action.FREE_COMPLETED}
        write_trace(again, tmp_path / "b.99999.csv")
        [third] = read_trace(tmp_path / "b.99999.csv")
        assert same(again, third)


def test_lifetimes(tmp_path):
    trace = parse(tmp_path, LOGS["lifetimes"]())
    assert names(trace) == [
        *("alloc 0", "alloc 1", "free_requested 0", "free_completed 0", "alloc 2"),
        *("free_requested 1", "free_completed 1", "alloc 3"),
        *("free_requested 2", "free_completed 2", "free_requested 3", "free_completed 3"),
    ]
    assert trace.bytes[trace.action == Action.ALLOC].tolist() == [512, 4096, 100, 1]


def kineto(tmp_path, *events):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(profile(*events)))
    return read_trace(path)


def test_kineto_is_ordered_by_time_and_filtered_by_device(tmp_path):
    first, second = kineto(
        tmp_path,
        memory(8, -100, 0, ts=7, device=1),
        memory(8, 100, 100, ts=5.5, device=1, **{"Ev Idx": 3}),
        memory(9, 50, 50, ts=5, device=0),
        memory(1, 77, 77, ts=5, device=-1, kind=0),
    )
    assert (first.device, second.device, first.devices) == (0, 1, 2)
    assert names(first) == ["alloc 0"]
    assert names(second) == ["alloc 0", "free_requested 0", "free_completed 0"]
    assert second.time_us.tolist() == [5, 7, 7]
    assert second.complete
    assert second.warnings == ()
    assert second.start_reserved == second.end_reserved == 1 << 30


def test_what_kineto_says_was_alive_before(tmp_path):
    """1,000 bytes: 300 and 200 of them freed later, the rest never seen."""
    [trace] = kineto(
        tmp_path,
        memory(1, 64, 1064, ts=1),
        memory(9, -300, 764, ts=2),
        memory(5, -200, 564, ts=3),
        memory(1, -64, 500, ts=4),
    )
    assert trace.start.bytes.tolist() == [500, 200, 300]
    assert trace.start.address.tolist() == [0, 5, 9]
    assert names(trace) == [
        *("alloc 3", "free_requested 2", "free_completed 2"),
        *("free_requested 1", "free_completed 1", "free_requested 3", "free_completed 3"),
    ]
    assert not trace.complete
    assert "1000 B were alive before the first event; 500 B of them" in trace.warnings[0]


def test_a_running_sum_that_is_wrong_is_told(tmp_path):
    [trace] = kineto(tmp_path, memory(1, 64, 64, ts=1), memory(2, 64, 192, ts=2), memory(3, 64, 256, ts=3))
    assert not trace.complete
    assert trace.warnings == (
        "'Total Allocated' is not the running sum after 2 of 3 events, first at traceEvents[2]: events are missing",
    )


@pytest.mark.parametrize(
    ("event", "what"),
    [
        (memory(1, 64, 64, ts="now"), "traceEvents[1].ts: is not a time"),
        (memory(1, 64, 64, ts=True), "traceEvents[1].ts: is not a time"),
        (memory(1, 64, 64, ts=-1), "traceEvents[1].ts: is not a time"),
        (memory(1, 64, 64, ts=float("nan")), "traceEvents[1].ts: is not a time"),
        (memory(1, 1.5, 64, ts=1), "traceEvents[1].args.Bytes: is not an integer"),
        (memory(1, 2**62 + 1, 64, ts=1), "traceEvents[1].args.Bytes: is not an integer"),
        (memory(1, -(2**62), 2**62, ts=1), "traceEvents[1].args: tells of more than 2**62 bytes"),
        (memory(1, 64, 64, ts=1, device="0"), "traceEvents[1].args.Device Id: is not an integer"),
        (memory(1, 64, 64, ts=1, kind=0), "has no [memory] events of a GPU: record with"),
        ({"name": "[memory]", "args": 3}, "traceEvents[1].args: is not an object"),
    ],
)
def test_what_kineto_cannot_be(tmp_path, event, what):
    fails(tmp_path, json.dumps(profile(event)), what)


def test_two_allocations_at_one_address_are_no_run(tmp_path):
    fails(
        tmp_path,
        json.dumps(profile(memory(1, 64, 64, ts=1), memory(1, 64, 128, ts=2))),
        "traceEvents[2]: allocates a block that was allocated already and not freed",
    )
    fails(tmp_path, json.dumps({"schemaVersion": 1, "traceEvents": {}}), "traceEvents: is not a list")
