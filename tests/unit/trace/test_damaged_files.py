"""Whatever happens to a file on its way: a trace that holds together, or one clear error."""

import json
import pickle
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_logs import LOGS
from small_snapshots import MIB, alloc, event, free, segment, snapshot

from movie.trace import TraceError, read_trace, write_trace

BASE = 1 << 40


def sample():
    rows = [event("segment_alloc", BASE + 64 * MIB, 20 * MIB, time_us=1)]
    for i in range(20):
        rows += [alloc(BASE + 64 * MIB, 5 + i, time_us=i), *free(BASE + 64 * MIB, 5 + i, time_us=i)]
    rows += [alloc(BASE + MIB, 9), event("segment_map", BASE + 256 * MIB, 2 * MIB)]
    return snapshot(
        rows,
        [
            segment(BASE, 20 * MIB, [(0, MIB, 7, "active_pending_free"), (MIB, 512, 9, "active_allocated")]),
            segment(BASE + 64 * MIB, 20 * MIB, []),
            segment(BASE + 256 * MIB, 4 * MIB, [], is_expandable=True),
        ],
        allocator_settings={"max_split_size": -1},
        external_annotations=[{"stage": "START", "name": "step", "device": 0, "time_us": 7}],
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One file a format, as bytes."""
    folder = tmp_path_factory.mktemp("whole")
    contents = {"pickle2": pickle.dumps(sample(), 2), "pickle4": pickle.dumps(sample(), 4)}
    contents["json"] = json.dumps(sample()).encode()
    (folder / "a").write_bytes(contents["pickle4"])
    traces = read_trace(folder / "a")
    for name in ("a.parquet", "a.case", "a.csv"):
        write_trace(traces, folder / name)
        contents[name] = (folder / name).read_bytes()
    return contents | {name: make() for name, make in LOGS.items()}


def read_or_fail(path):
    try:
        traces = read_trace(path)
    except TraceError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
        assert str(error).startswith(f"{path}: ")  # noqa: PT017
        return False
    for trace in traces:
        trace.check()
    return True


LINES = ("a.case", "a.csv", "stalloc", "rmm", "lifetimes")  # may end after any line
FORMATS = ("pickle2", "pickle4", "json", "a.parquet", *LINES, "kineto", "rows", "rows.xz")


@pytest.mark.parametrize("form", FORMATS)
def test_whole(tmp_path, files, form):
    (tmp_path / "a").write_bytes(files[form])
    assert read_or_fail(tmp_path / "a")


@pytest.mark.parametrize("form", FORMATS)
def test_cut_off(tmp_path, files, form):
    whole = files[form]
    for end in random.Random(1).sample(range(len(whole)), min(150, len(whole))):
        (tmp_path / "a").write_bytes(whole[:end])
        # Some formats may end after any line, or row; everything else says where it ends.
        assert not read_or_fail(tmp_path / "a") or form in LINES or (form == "rows" and end % 32 == 0)


@pytest.mark.parametrize("form", FORMATS)
def test_flipped_bytes(tmp_path, files, form):
    chance = random.Random(2)
    for _ in range(250):
        damaged = bytearray(files[form])
        for _ in range(chance.choice((1, 1, 3, 20))):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        (tmp_path / "a").write_bytes(damaged)
        read_or_fail(tmp_path / "a")


WRONG = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.sampled_from([0, 1, -1, 512, BASE, BASE + MIB, 2**62, 2**63 - 1, 2**63]),
    st.floats(),
    st.sampled_from(["", "alloc", "free_requested", "free_completed", "segment_free", "oom", "START", "large"]),
    st.just([]),
    st.just({}),
    st.just((0, 1)),
)


@settings(max_examples=400)
@given(st.data())
def test_wrong_values_anywhere(tmp_path_factory, data):
    """Values replaced, and items taken out or doubled, at any depth of the snapshot."""
    value = sample()
    for _ in range(data.draw(st.integers(1, 4))):
        holder = value
        while True:
            keys = sorted(holder) if type(holder) is dict else range(len(holder)) if type(holder) is list else ()
            if not keys:
                break
            key = data.draw(st.sampled_from(keys))
            if type(holder[key]) in (dict, list) and len(holder[key]) and data.draw(st.integers(0, 9)):
                holder = holder[key]
                continue
            change = data.draw(st.sampled_from(("replace", "remove", "double")))
            if change == "replace":
                holder[key] = data.draw(WRONG)
            elif change == "remove":
                del holder[key]
            elif type(holder) is list:
                holder.insert(key, pickle.loads(pickle.dumps(holder[key])))
            break
    path = tmp_path_factory.getbasetemp() / "wrong"
    path.write_bytes(pickle.dumps(value, 4))
    read_or_fail(path)


def test_the_largest_sizes(tmp_path):
    """One size of 2**62 is a size. Many of them add up to more than 64 bits hold."""
    most = 2**62
    path = tmp_path / "a"
    path.write_bytes(pickle.dumps(snapshot([alloc(0, most), *free(0, most)], []), 4))
    assert read_trace(path)[0].bytes.tolist() == [most] * 3
    path.write_bytes(pickle.dumps(snapshot([*[alloc(i, most) for i in range(5)], OOM, *MAPS], []), 4))
    with pytest.raises(TraceError, match="add up to more than 2"):
        read_trace(path)


OOM = {"action": "oom", "size": 2**62, "device_free": 2**62, "stream": 0}
MAPS = [event("segment_map", 0, 2**62), event("segment_unmap", 0, 2**62)] * 9
