"""Snapshots of torch: the state before the first event, ids, pools, what is added, and what is refused."""

import base64
import gzip
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_snapshots import MIB, alloc, event, free, names, read, segment, snapshot, write

from movie.trace import Action, TraceError, read_trace
from movie.trace.snapshot.lives import rounded_size
from movie.trace.snapshot.read import read_snapshot

BASE = 1 << 40
EMPTY = segment(BASE, 20 * MIB, [(0, 20 * MIB, 1, "inactive")])


def start_of(trace):
    start = trace.start
    return list(
        zip(
            (start.address - np.uint64(BASE)).tolist(),
            start.bytes.tolist(),
            start.size.tolist(),
            start.pending.tolist(),
            strict=True,
        )
    )


def segments_of(trace):
    segments = trace.segments
    return list(zip((segments.address - np.uint64(BASE)).tolist(), segments.size.tolist(), strict=True))


# --- containers ---


def test_containers(tmp_path):
    value = snapshot([alloc(BASE, 5), *free(BASE, 5)], [EMPTY])
    pickled = write(tmp_path, value).read_bytes()
    page = b'<!DOCTYPE html>\n<script>const local_files = [{"name": "a", "base64": "%s"}]</script>' % base64.b64encode(
        pickled
    )
    text = json.dumps(value).encode()
    forms = set()
    for content in (pickled, page, text, b"\xef\xbb\xbf \n" + text):
        for packed in (content, gzip.compress(content)):
            path = tmp_path / "anything.xyz"
            path.write_bytes(packed)
            [trace] = read_trace(path)
            assert names(trace) == ["alloc 0", "free_requested 0", "free_completed 0"]
            forms.add(trace.format)
    assert forms == {f"torch snapshot ({c}{z})" for c in ("pickle", "MemoryViz page", "JSON") for z in ("", ", gzip")}


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"<html>nothing", "HTML: no snapshot in this page"),
        (b'<html>"base64": "AAA"', "byte 17: is not base64"),
        (b'<html>"base64": ""', "byte 0: the pickle ends early"),
        (b"[" * 10**7, "byte 64: containers inside each other, deeper than 64"),
        (b"[1, 2", "byte 5: the text ends early"),
        (b'{"segments": nope}', "line 1 column 14: is not JSON"),
        (b'{"a": "\xff"}', "JSON: cannot be loaded"),
        (b'{"a": %s}' % (b"9" * 10000), "JSON: cannot be loaded"),
        (b"[]", "is a list, not a memory snapshot"),
        (b'{"events": []}', "has no 'segments'"),
        (b'{"segments": []}', "has no 'device_traces'"),
        (b'{"segments": [], "device_traces": [[]]}', "holds no events and no segments"),
    ],
)
def test_containers_of_something_else(tmp_path, content, what):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(TraceError, match="a: .*" + what.replace("(", r"\(")):
        read_trace(tmp_path / "a")


# --- the state before the first event ---


def test_start_blocks(tmp_path):
    """Alive throughout, alive and freed, pending and completed, pending throughout."""
    trace = read(
        tmp_path,
        snapshot(
            [
                *free(BASE + 2 * MIB, 2 * MIB - 9),
                event("free_completed", BASE + 6 * MIB, MIB),
                alloc(BASE + 2 * MIB, 99),
            ],
            [
                segment(
                    BASE,
                    20 * MIB,
                    [
                        (0, 2 * MIB, 2 * MIB - 1, "active_allocated"),
                        (2 * MIB, 512, 99, "active_allocated"),
                        (10 * MIB, MIB, 5, "active_pending_free"),
                    ],
                )
            ],
        ),
    )
    assert start_of(trace) == [
        (0, 2 * MIB - 1, 2 * MIB, False),
        (2 * MIB, 2 * MIB - 9, 2 * MIB, False),
        (6 * MIB, MIB, MIB, True),
        (10 * MIB, 5, MIB, True),
    ]
    assert names(trace) == ["free_requested 1", "free_completed 1", "free_completed 2", "alloc 4"]
    assert not trace.complete
    assert "has lost its head" in trace.warnings[0]


@pytest.mark.parametrize(
    ("hole", "segment_is", "limit", "size"),
    [
        (
            MIB,
            {"segment_type": "large", "is_expandable": False},
            -1,
            3 * MIB,
        ),  # a rest that native would not have split off
        (MIB + 512, {"segment_type": "large", "is_expandable": False}, -1, 2 * MIB),
        (512, {"segment_type": "small", "is_expandable": False}, -1, 2 * MIB),
        (MIB, {"segment_type": "large", "is_expandable": True}, -1, 2 * MIB),
        (
            5 * MIB,
            {"segment_type": "large", "is_expandable": False},
            2 * MIB,
            7 * MIB,
        ),  # blocks of this size are not split at all
        (5 * MIB, {"segment_type": "large", "is_expandable": False}, 2 * MIB + 1, 2 * MIB),
    ],
)
def test_the_gap_rule(tmp_path, hole, segment_is, limit, size):
    after = 2 * MIB + hole
    blocks = [(0, after, 1, "inactive"), (after, MIB, MIB, "active_allocated")]
    whole = segment(BASE, after + MIB, blocks, **segment_is)
    trace = read(tmp_path, snapshot(free(BASE, 2 * MIB - 7), [whole], allocator_settings={"max_split_size": limit}))
    assert trace.start.size.tolist() == [size, MIB]


@pytest.mark.parametrize(
    ("asked", "divisions", "size"),
    [
        (1, {}, 512),
        (513, {}, 1024),
        (1200 << 20, {"1024": 4}, 1280 << 20),
        (1200 << 20, {"512": 4}, 1200 << 20),
        (1024 << 20, {"1024": 4}, 1024 << 20),
        (1000, {"1": 4}, 1024),
        (5000, {"1": 4}, 5120),
        (70 << 30, {"32768": 2}, 96 << 30),
        (5000, {"1": "4"}, 5120),
        (5000, {"1": 3}, 5120),
    ],
)
def test_rounding(asked, divisions, size):
    assert rounded_size(asked, {"roundup_power2_divisions": divisions}) == size


def test_segments_are_rewound(tmp_path):
    trace = read(
        tmp_path,
        snapshot(
            [
                event("segment_alloc", BASE + 64 * MIB, 20 * MIB),
                event("segment_free", BASE + 32 * MIB, 2 * MIB, stream=7),
                event("segment_alloc", BASE + 96 * MIB, 4 * MIB),
                event("segment_free", BASE + 96 * MIB, 4 * MIB),
                event("segment_alloc", BASE + 32 * MIB, 6 * MIB),
            ],
            [
                segment(BASE, 20 * MIB, []),
                segment(BASE + 64 * MIB, 20 * MIB, []),
                segment(BASE + 32 * MIB, 6 * MIB, []),
            ],
        ),
    )
    assert segments_of(trace) == [(0, 20 * MIB), (32 * MIB, 2 * MIB)]
    assert trace.segments.small.tolist() == [False, True]
    assert trace.segments.stream.tolist() == [0, 7]
    assert (trace.start_reserved, trace.end_reserved) == (22 * MIB, 46 * MIB)
    assert not any("do not fit" in warning for warning in trace.warnings)


def test_mapped_ranges_are_rewound(tmp_path):
    expandable = {"is_expandable": True}
    trace = read(
        tmp_path,
        snapshot(
            [
                event("segment_unmap", BASE + 20 * MIB, 20 * MIB),
                event("segment_map", BASE + 80 * MIB, 20 * MIB),
                event("segment_unmap", BASE + 140 * MIB, 2 * MIB),
            ],
            [segment(BASE, 20 * MIB, [], **expandable), segment(BASE + 40 * MIB, 60 * MIB, [], **expandable)],
        ),
    )
    assert segments_of(trace) == [(0, 80 * MIB), (140 * MIB, 2 * MIB)]
    assert trace.segments.expandable.all()
    assert trace.segments.small.tolist() == [False, True]
    assert (trace.start_reserved, trace.end_reserved) == (82 * MIB, 80 * MIB)


def test_an_empty_start_is_complete(tmp_path):
    trace = read(tmp_path, snapshot([event("segment_alloc", BASE, 20 * MIB), alloc(BASE, 5), *free(BASE, 5)], [EMPTY]))
    assert (trace.complete, trace.warnings, len(trace.start), trace.start_reserved) == (True, (), 0, 0)


def test_frees_of_unknown_blocks_are_left_out(tmp_path):
    trace = read(tmp_path, snapshot([*free(BASE - 512, 5), alloc(BASE, 5), *free(BASE, 5)], [EMPTY]))
    assert names(trace) == ["alloc 0", "free_requested 0", "free_completed 0"]
    assert not trace.complete
    assert any("2 events free blocks that neither" in warning for warning in trace.warnings)


def test_a_recording_that_stopped_early_is_found_out(tmp_path):
    trace = read(
        tmp_path, snapshot([event("segment_alloc", BASE, 20 * MIB), alloc(BASE, 5), alloc(BASE + 512, 5)], [EMPTY])
    )
    assert not trace.complete
    assert any("2 blocks of the final segments do not fit" in warning for warning in trace.warnings)


def test_requests_and_completions_that_were_not_recorded(tmp_path):
    only = read(
        tmp_path,
        snapshot(
            [alloc(BASE, 5), event("free_completed", BASE, 5), alloc(BASE, 5)],
            [segment(BASE, MIB, [(0, 512, 5, "active_allocated")])],
        ),
    )
    assert names(only) == ["alloc 0", "free_requested 0", "free_completed 0", "alloc 1"]
    requested = [alloc(BASE, 5), event("free_requested", BASE, 5), alloc(BASE, 5), event("free_requested", BASE, 5)]
    only = read(tmp_path, snapshot(requested, [segment(BASE, MIB, [(0, 512, 5, "active_pending_free")])]))
    assert names(only) == ["alloc 0", "free_requested 0", "free_completed 0", "alloc 1", "free_requested 1"]
    assert any("1 free_requested events have no free_completed" in warning for warning in only.warnings)


def test_old_snapshots_without_addresses_of_blocks(tmp_path):
    old = segment(
        BASE,
        3 * MIB,
        [(0, MIB, 7, "inactive"), (MIB, MIB, 8, "active_allocated"), (2 * MIB, MIB, 9, "active_awaiting_free")],
    )
    for key in ("segment_pool_id", "is_expandable"):
        del old[key]
    for block in old["blocks"]:
        del block["address"]
        block["history"] = [{"addr": 1, "real_size": 2, "frames": []}]
    lone = {"action": "free_completed", "addr": 1, "size": 2, "stream": 0}
    trace = read(tmp_path, snapshot([lone], [old]))
    assert start_of(trace) == [(MIB, 8, MIB, False), (2 * MIB, 9, MIB, True)]
    assert len(trace) == 0
    assert "one lone event" in trace.warnings[0]


@st.composite
def runs(draw):
    """A run of a toy allocator with slots of 1 MiB: the state before each event, the events, what lives and waits."""
    events, states = [], []
    live, waits = {}, set()
    for _ in range(draw(st.integers(1, 40))):
        states.append((dict(live), set(waits)))
        free_slots = [slot for slot in range(6) if slot not in live]
        choices = ["alloc"] * bool(free_slots) + ["free", "late"] * bool(set(live) - waits) + ["complete"] * bool(waits)
        action = draw(st.sampled_from(choices))
        if action == "alloc":
            slot = draw(st.sampled_from(free_slots))
            live[slot] = (draw(st.integers(1, MIB)), draw(st.integers(0, 2)))
            events.append(alloc(BASE + slot * MIB, live[slot][0], stream=live[slot][1]))
            continue
        slot = draw(st.sampled_from(sorted(waits) if action == "complete" else sorted(set(live) - waits)))
        size, stream = live[slot]
        if action != "complete":
            events.append(event("free_requested", BASE + slot * MIB, size, stream=stream))
            waits.add(slot)
        if action == "free":
            states.append((dict(live), set(waits)))
        if action != "late":
            events.append(event("free_completed", BASE + slot * MIB, size, stream=stream))
            waits.remove(slot)
            del live[slot]
    return states, events, live, waits


@settings(max_examples=200)
@given(runs(), st.data())
def test_any_window_of_any_run(run, data):
    """However much of the head is lost: the start is what lived then, and each event is of the block at its address."""
    states, events, live, waits = run
    first = data.draw(st.integers(0, len(events) - 1))
    if first == len(events) - 1 and len(events) > 1:
        first -= 1  # one lone event says that nothing was recorded
    # The toy's streams are not those of segments, so each slot is a segment.
    segments = []
    for slot in range(6):
        size, stream = live.get(slot, (1, 9))
        state = "inactive" if slot not in live else "active_pending_free" if slot in waits else "active_allocated"
        segments.append(segment(BASE + slot * MIB, MIB, [(0, MIB, size, state)], stream=stream))
    window = [dict(e) for e in events[first:]]
    [trace] = read_snapshot(snapshot(window, segments), "run", "toy")
    if len(events) - first == 1:
        return
    expected_live, expected_waits = states[first]
    assert [
        ((address - BASE) // MIB, size, stream, pending)
        for address, size, stream, pending in zip(
            trace.start.address.tolist(),
            trace.start.bytes.tolist(),
            trace.start.stream.tolist(),
            trace.start.pending.tolist(),
            strict=True,
        )
    ] == [(slot, *expected_live[slot], slot in expected_waits) for slot in sorted(expected_live)]
    owner = {slot: number for number, slot in enumerate(sorted(expected_live))}
    ids, fresh = [], len(owner)
    for e in events[first:]:
        slot = (e["addr"] - BASE) // MIB
        if e["action"] == "alloc":
            owner[slot], fresh = fresh, fresh + 1
        ids.append(owner[slot])
    assert trace.id.tolist() == ids
    assert [Action(a).name.lower() for a in trace.action.tolist()] == [e["action"] for e in events[first:]]
    assert not any("fit" in warning or "left out" in warning for warning in trace.warnings)


# --- devices and pools ---


def test_devices(tmp_path):
    there = segment(BASE, 20 * MIB, [(0, MIB, MIB, "active_allocated")])
    value = {
        "segments": [there | {"device": 1}, segment(BASE, MIB, [], device=5)],
        "device_traces": [[], [*free(BASE + MIB, 7), alloc(BASE + 8 * MIB, 7)], [alloc(BASE, 3), *free(BASE, 3)], []],
    }
    path = write(tmp_path, value)
    traces = read_trace(path)
    assert [(t.device, t.devices, len(t), len(t.start)) for t in traces] == [(1, 3, 3, 2), (2, 3, 3, 0), (5, 3, 0, 0)]
    assert "device 5 has segments but no list of events" in traces[2].warnings
    assert [t.device for t in read_trace(path, device=2)] == [2]
    with pytest.raises(TraceError, match="has no device 0; it has: 1, 2, 5"):
        read_trace(path, device=0)


def test_pools(tmp_path):
    """Named by the event; else those of the segments; the number is that of the first appearance."""
    a, b = segment(BASE, MIB, [], segment_pool_id=(0, 7)), segment(BASE + 4 * MIB, MIB, [], segment_pool_id=(3, 0))
    rows = [
        alloc(BASE, 5),
        *free(BASE, 5),
        alloc(BASE + 4 * MIB, 5),  # in the segment that stood here before the one of pool 3:0
        *free(BASE + 4 * MIB, 5),
        event("segment_free", BASE + 4 * MIB, 2 * MIB),
        event("segment_alloc", BASE + 4 * MIB, MIB),
        alloc(BASE + 4 * MIB, 5),
        *free(BASE + 4 * MIB, 5),
        alloc(BASE + 4 * MIB, 5, pool_id=(0, 9)),
        *free(BASE + 4 * MIB, 5, pool_id=[0, 9]),
    ]
    trace = read(tmp_path, snapshot(rows, [a, b]))
    assert trace.pools == ("default", "0:7", "3:0", "0:9")
    kept = trace.action != Action.EMPTY_CACHE
    assert trace.pool[kept].tolist() == [1] * 3 + [0] * 3 + [0, 2] + [2] * 3 + [3] * 3
    assert trace.segments.pool.tolist() == [1, 0]


def test_pools_of_segments_that_were_given_back(tmp_path):
    """Known if the segment was noted while it was there: its events from segment_alloc to segment_free, no others."""
    life = [
        event("segment_alloc", BASE, 2 * MIB),
        alloc(BASE + MIB, 5),
        *free(BASE + MIB, 5),
        event("segment_free", BASE, 2 * MIB),
    ]
    noted = [0, 6, BASE, 2 * MIB, (0, 7)]
    again = [0, 9, BASE, 2 * MIB, (0, 7)]
    other = [1, 7, BASE, 2 * MIB, (0, 8)]  # of another device
    trace = read(tmp_path, snapshot(life * 3, [], private_segments=[noted, other, again]))
    assert trace.pools == ("default", "0:7", "0:8")
    kept = trace.action != Action.EMPTY_CACHE
    assert trace.pool[kept].tolist() == [0] * 5 + [1] * 5 + [0] * 5


def test_pools_of_parts_of_an_expandable_segment(tmp_path):
    """Each page is of the noted pool from its map to its unmap, also where these are not together."""
    page = 2 * MIB
    rows = [
        event("segment_map", BASE, page),
        alloc(BASE, 5),
        *free(BASE, 5),
        event("segment_unmap", BASE, page),  # the first page was another's
        event("segment_map", BASE + page, page),
        alloc(BASE + page, 5),
        event("segment_map", BASE, page),
        alloc(BASE, 5),  # here both are noted
        *free(BASE, 5),
        event("segment_unmap", BASE, page),
        *free(BASE + page, 5),
        event("segment_unmap", BASE + page, page),
        event("segment_map", BASE, page),
        alloc(BASE, 5),
    ]
    trace = read(
        tmp_path,
        snapshot(
            rows,
            [segment(BASE, page, [(0, 512, 5, "active_allocated")], is_expandable=True)],
            private_segments=[[0, 9, BASE, 2 * page, (0, 7)]],
        ),
    )
    kept = trace.action != Action.EMPTY_CACHE
    assert trace.pool[kept].tolist() == [0] * 5 + [1] * 10 + [0] * 2


def test_an_event_that_names_its_pool_is_believed(tmp_path):
    rows = [
        event("segment_alloc", BASE, 2 * MIB, pool_id=(0, 9)),
        alloc(BASE, 5),
    ]
    trace = read(tmp_path, snapshot(rows, [], private_segments=[[0, 2, BASE, 2 * MIB, [0, 7]]]))
    assert [trace.pools[pool] for pool in trace.pool.tolist()] == ["0:9", "0:7"]


# --- what is added ---


def test_marks_do_not_part_what_is_one_step(tmp_path):
    rows = [
        event("segment_alloc", BASE, 20 * MIB, time_us=10),
        alloc(BASE, 5, time_us=12),
        event("free_requested", BASE, 5, time_us=20),
        event("free_completed", BASE, 5, time_us=22),
    ]
    notes = [
        {"stage": "START", "name": name, "device": device, "time_us": time}
        for time, device, name in (
            (30, 0, "d"),
            (5, 0, "a"),
            (11, 0, "b"),
            (21, -1, "c"),
            (11, 1, "other device"),
            (21, 0, "b"),
        )
    ]
    notes.append({"stage": "END", "name": "end", "device": 0, "time_us": 11})
    trace = read(tmp_path, snapshot(rows, [EMPTY], external_annotations=notes))
    shown = [
        trace.phases[p] if p >= 0 else Action(a).name.lower() for a, p in zip(trace.action, trace.phase, strict=True)
    ]
    assert shown == ["a", "b", "segment_alloc", "alloc", "c", "b", "free_requested", "free_completed", "d"]
    assert trace.time_us.tolist() == [5, 11, 10, 12, 21, 21, 20, 22, 30]


STEP = [alloc(BASE, 5), *free(BASE, 5)]


def acquired(*sizes):
    """Segments at 64, 128, ... MiB, and an allocation that is the reason for the last of them."""
    return [
        event("segment_alloc", BASE + (index + 1) * 64 * MIB, size * MIB) for index, size in enumerate(sizes)
    ] + STEP


def burst(*sizes):
    return [event("segment_free", BASE + (index + 1) * 64 * MIB, size * MIB) for index, size in enumerate(sizes)]


OOM = {"action": "oom", "size": 5, "device_free": 1, "stream": 0}


@pytest.mark.parametrize(
    ("rows", "more", "calls"),
    [
        ([*acquired(40, 20), *burst(40, 20)], {}, 1),
        ([*acquired(40, 20), *burst(40, 20), *STEP], {}, 1),
        ([*acquired(40, 20), *burst(40), *STEP, event("segment_free", BASE + 128 * MIB, 20 * MIB)], {}, 2),
        ([*acquired(40, 20), *burst(40, 20), OOM], {}, 0),
        # 80 MiB are held. With 8 more it would have been more than ever: there was no room without giving back.
        ([*acquired(40, 20), *burst(40), *acquired(8)], {}, 0),
        # Later 130 MiB are held, so there was room for the 60 as well.
        ([*acquired(40, 20), *burst(40, 20), *acquired(60), *acquired(80)], {}, 1),
        ([*acquired(40, 20), *burst(40, 20), *acquired(60), *acquired(80)], {"garbage_collection_threshold": 0.8}, 0),
        # An allocation gives back and asks again within one step.
        ([*acquired(40, 20)[:2], *burst(40, 20), *STEP], {}, 0),
    ],
)
def test_calls_of_empty_cache_are_told_from_retries(rows, more, calls):
    [trace] = read_snapshot(snapshot(list(rows), [EMPTY], allocator_settings=more), "a", "b")
    assert np.count_nonzero(trace.action == Action.EMPTY_CACHE) == calls
    for row in np.flatnonzero(trace.action == Action.EMPTY_CACHE):
        assert trace.action[row + 1] == Action.SEGMENT_FREE


def test_recorded_calls_of_empty_cache():
    rows = [
        event("segment_alloc", BASE + 64 * MIB, 40 * MIB),
        alloc(BASE + 64 * MIB, 5),
        *free(BASE + 64 * MIB, 5),
        *burst(40),
        event("segment_alloc", BASE + 64 * MIB, 8 * MIB),
        alloc(BASE + 64 * MIB, 9),
    ]
    [trace] = read_snapshot(snapshot(rows, [EMPTY], empty_cache_calls=[(0, 0), (1, 1), (9, 9)]), "a", "b")
    assert names(trace) == [
        "empty_cache -1",
        "segment_alloc -1",
        "alloc 0",
        "free_requested 0",
        "free_completed 0",
        "empty_cache -1",
        "segment_free -1",
        "segment_alloc -1",
        "alloc 1",
    ]


def test_the_order_of_work_that_movie_notes():
    rows = [alloc(BASE, 5), alloc(BASE + MIB, 6), *free(BASE, 5), alloc(BASE, 7), *free(BASE, 7)]
    noted = [
        (2, 0, "use", 7, BASE),  # of the first block, after two allocations
        (2, 0, "use", 7, BASE + 64 * MIB),  # no block begins there
        (2, 1, "seen", 7, 3),
        (3, 1, "use", 9, BASE),  # the address has another block now
        (3, 2, "seen", 9, 1),
        (9, 9, "seen", 9, 2),  # after the last event: nothing comes of it
    ]
    [trace] = read_snapshot(snapshot(rows, [EMPTY], order_of_work=[noted]), "a", "b")
    assert [name for name in names(trace) if not name.startswith("free_completed")] == [
        "alloc 0",
        "alloc 1",
        "use 0",
        "free_requested 0",
        "seen -1",
        "alloc 2",
        "use 2",
        "free_requested 2",
        "seen -1",
    ]
    of = {action: np.flatnonzero(trace.action == action) for action in (Action.USE, Action.SEEN)}
    assert not trace.completions_recorded, "the device decides when work is done, as the rows say"
    streams = trace.stream[of[Action.USE]].tolist()
    assert len(set(streams)) == 2
    assert trace.stream[of[Action.SEEN]].tolist() == streams, "numbered as those of the blocks are"
    assert trace.bytes[of[Action.SEEN]].tolist() == [3, 1], "which of the stream's events"


# --- what is refused ---


def changed(path, value):
    """The sample with one value replaced, or a key taken out where the value is `del`."""
    sample = snapshot(
        [*free(BASE, 5), alloc(BASE, 6), alloc(BASE + MIB, 7, pool_id=(0, 0))],
        [segment(BASE, 20 * MIB, [(0, 512, 6, "active_allocated"), (MIB, MIB, 7, "active_allocated")])],
        external_annotations=[{"stage": "START", "name": "x", "device": 0, "time_us": 1}],
    )
    *way, last = path
    holder = sample
    for key in way:
        holder = holder[key]
    if value is del_:
        del holder[last]
    else:
        holder[last] = value
    return sample


del_ = object()
EVENT = ("device_traces", 0, 2)
SEGMENT = ("segments", 0)
BLOCK = ("segments", 0, "blocks", 0)


@pytest.mark.parametrize(
    ("path", "value", "where", "what"),
    [
        (("segments",), None, "", "has no 'segments'"),
        (("segments",), 5, "segments", "is 5, not a list"),
        (("device_traces",), {}, "device_traces", "is a dict, not a list"),
        (("device_traces", 0), 5, "device_traces[0]", "is 5, not a list"),
        (EVENT, None, "device_traces[0][2]", "is missing, not a dict"),
        (EVENT, "alloc", "device_traces[0][2]", "is a string, not a dict"),
        ((*EVENT, "action"), del_, "device_traces[0][2]", "has no 'action'"),
        ((*EVENT, "action"), 0, "device_traces[0][2].action", "is 0, not a string"),
        ((*EVENT, "action"), [], "device_traces[0][2].action", "is a list, not a string"),
        ((*EVENT, "size"), del_, "device_traces[0][2]", "has no 'size'"),
        ((*EVENT, "size"), 0, "device_traces[0][2].size", "is 0: an allocation of nothing"),
        ((*EVENT, "size"), -1, "device_traces[0][2].size", "is -1, not from 0 to"),
        ((*EVENT, "size"), 2**62 + 1, "device_traces[0][2].size", f"is {2**62 + 1}, not from 0 to {2**62}"),
        ((*EVENT, "size"), 2**70, "device_traces[0][2].size", f"is {2**70}, not from"),
        ((*EVENT, "size"), True, "device_traces[0][2].size", "is True, not an integer"),
        ((*EVENT, "size"), 5.0, "device_traces[0][2].size", "is 5.0, not an integer"),
        ((*EVENT, "size"), "5", "device_traces[0][2].size", "is a string, not an integer"),
        ((*EVENT, "addr"), del_, "device_traces[0][2]", "has no 'addr'"),
        ((*EVENT, "addr"), -5, "device_traces[0][2].addr", "is -5, not from 0"),
        ((*EVENT, "addr"), 2**63, "device_traces[0][2].addr", f"is {2**63}, not from 0"),
        ((*EVENT, "stream"), None, "device_traces[0][2]", "has no 'stream'"),
        ((*EVENT, "stream"), 2**63, "device_traces[0][2].stream", "not from"),
        ((*EVENT, "time_us"), "now", "device_traces[0][2].time_us", "is a string, not an integer"),
        ((*EVENT, "time_us"), -1, "device_traces[0][2].time_us", "is -1, not from 0"),
        ((*EVENT, "pool_id"), 5, "device_traces[0][2].pool_id", "is 5, not a pair of integers"),
        ((*EVENT, "pool_id"), ([], 0), "device_traces[0][2].pool_id", "is a tuple, not a pair of integers"),
        ((*EVENT, "pool_id"), (1, 2, 3), "device_traces[0][2].pool_id", "is a tuple, not a pair of integers"),
        (
            (*EVENT, "addr"),
            BASE + MIB,
            "device_traces[0][3]",
            "is allocated again, it is alive since device_traces[0][2]",
        ),
        (
            (*EVENT, "action"),
            "free_requested",
            "device_traces[0][2]",
            "is freed again, it is freed since device_traces[0][1]",
        ),
        (
            (*EVENT, "action"),
            "free_completed",
            "device_traces[0][2]",
            "is freed again, it is freed since device_traces[0][1]",
        ),
        (SEGMENT, [], "segments[0]", "is a list, not a dict"),
        ((*SEGMENT, "device"), -1, "segments[0].device", "is -1, not from 0"),
        ((*SEGMENT, "device"), 10**6, "segments[0].device", "not from 0 to 1023"),
        ((*SEGMENT, "address"), del_, "segments[0]", "has no 'address'"),
        ((*SEGMENT, "address"), 2**63 - 1, "segments[0]", "reaches beyond the address space"),
        ((*SEGMENT, "total_size"), -1, "segments[0].total_size", "is -1, not a size"),
        ((*SEGMENT, "total_size"), 2**62 + 1, "segments[0].total_size", "not a size"),
        ((*SEGMENT, "total_size"), False, "segments[0].total_size", "is False, not an integer"),
        ((*SEGMENT, "segment_type"), "medium", "segments[0].segment_type", "is 'medium', not 'small' or 'large'"),
        ((*SEGMENT, "segment_pool_id"), "0", "segments[0].segment_pool_id", "is a string, not a pair"),
        ((*SEGMENT, "is_expandable"), 1, "segments[0].is_expandable", "is 1, not true or false"),
        ((*SEGMENT, "blocks"), del_, "segments[0]", "has no 'blocks'"),
        ((*SEGMENT, "blocks"), {}, "segments[0].blocks", "is a dict, not a list"),
        ((*BLOCK, "size"), 2 * MIB, "segments[0].blocks[1]", "lies in the block before it"),
        ((*BLOCK, "size"), 0, "segments[0].blocks[0].size", "is 0, not a size from 1"),
        ((*BLOCK, "address"), BASE - 1, "segments[0].blocks[0]", "outside of its segment"),
        ((*BLOCK, "requested_size"), 513, "segments[0].blocks[0]", "has 512 bytes, less than the 513 asked for"),
        ((*BLOCK, "requested_size"), 1.5, "segments[0].blocks[0].requested_size", "is 1.5, not an integer"),
        ((*BLOCK, "state"), "lost", "segments[0].blocks[0]", "has the unknown state 'lost'"),
        (("external_annotations",), {}, "external_annotations", "is a dict, not a list"),
        (("external_annotations", 0), 7, "external_annotations[0]", "is 7, not a dict"),
        (("external_annotations", 0, "time_us"), 1.5, "external_annotations[0].time_us", "is 1.5, not an integer"),
        (("external_annotations", 0, "name"), None, "external_annotations[0]", "has no 'name'"),
        (("allocator_settings",), [], "allocator_settings", "is a list, not a dict"),
        (("empty_cache_calls",), [3], "empty_cache_calls[0]", "is 3, not a pair of integers"),
        (("private_segments",), [[0, 1, 2, 3]], "private_segments[0]", "not a noted segment"),
        (("private_segments",), [[0, -1, 2, 3, (0, 1)]], "private_segments[0][1]", "is -1, not from 0"),
        (("private_segments",), [[0, 1, 2, 0, (0, 1)]], "private_segments[0][3]", "is 0, not a size from 1"),
        (("private_segments",), [[0, 1, 2, 3, 4]], "private_segments[0][4]", "is 4, not a pair"),
        (("order_of_work",), [[3]], "order_of_work[0][0]", "is 3, not what is noted of the order of work"),
        (("order_of_work",), [[[0, 0, "seen", 1]]], "order_of_work[0][0]", "not what is noted of the order of work"),
        (("order_of_work",), [[[0, -1, "seen", 1, 1]]], "order_of_work[0][0][1]", "is -1, not from 0"),
        (("order_of_work",), [[[0, 0, "seen", 1, "x"]]], "order_of_work[0][0][4]", "not an integer"),
    ],
)
def test_wrong_values_are_named_with_their_place(tmp_path, path, value, where, what):
    with pytest.raises(TraceError) as caught:
        read(tmp_path, changed(path, value))
    assert caught.value.where == where
    assert what in caught.value.what
    assert str(caught.value) == f"{tmp_path / 'a.pickle'}: {where + ': ' if where else ''}{caught.value.what}"


def test_the_sample_itself_is_fine(tmp_path):
    assert len(read(tmp_path, changed(("more",), 1))) == 4


def test_one_list_many_times(tmp_path):
    """A pickle can name a list again for two bytes; to walk it each time could take for ever."""
    one = segment(BASE, 20 * MIB, [])
    with pytest.raises(TraceError, match=r"segments\[1\].blocks: is the list of another segment"):
        read(tmp_path, snapshot([], [one] * 1000))
    events = [alloc(BASE, 5), *free(BASE, 5)]
    with pytest.raises(TraceError, match="device_traces: holds one list twice"):
        read(tmp_path, {"segments": [one], "device_traces": [events, events]})


def test_overlapping_segments(tmp_path):
    with pytest.raises(TraceError, match="two segments of device 0 overlap"):
        read(tmp_path, snapshot([], [segment(BASE, 2 * MIB, []), segment(BASE + MIB, 2 * MIB, [])]))


def test_unknown_kinds_of_events_are_left_out(tmp_path):
    rows = [
        alloc(BASE, 5),
        {"action": "teleport"},
        {"action": "annotate", "addr": "x"},
        *free(BASE, 5),
        {"action": "teleport"},
    ]
    trace = read(tmp_path, snapshot(rows, [EMPTY]))
    assert names(trace) == ["alloc 0", "free_requested 0", "free_completed 0"]
    assert "device_traces[0]: 2 events of the unknown kind 'teleport' are left out" in trace.warnings
    with pytest.raises(TraceError, match="more than 16 unknown kinds"):
        read(tmp_path, snapshot([{"action": f"x{i}"} for i in range(20)], [EMPTY]))


def test_settings_are_kept_as_far_as_they_are_plain(tmp_path):
    given_settings = {
        "max_split_size": 5,
        "roundup_power2_divisions": {"1": 2, "x": []},
        "deep": [[1]],
        "huge": 2**80,
        "name": "x",
    }
    trace = read(tmp_path, snapshot([], [EMPTY], allocator_settings=given_settings))
    assert trace.settings == {"max_split_size": 5, "roundup_power2_divisions": {"1": 2}, "name": "x"}
