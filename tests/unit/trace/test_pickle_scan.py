"""The look through a pickle before Python loads it."""

import os
import pickle
import pickletools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from movie import _core

SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(max_size=20)
PLAIN = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(max_size=5), inner, max_size=5)
        | st.lists(inner, max_size=5).map(tuple)
    ),
    max_leaves=30,
)


def depth_of(value):
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    if isinstance(value, tuple) and value:  # Python has one empty tuple, which costs nothing
        return 1 + max(map(depth_of, value))
    return 0


@given(PLAIN, st.integers(2, 5))
def test_plain_data_passes_and_its_depth_is_known(value, protocol):
    scan = _core.scan_pickle(pickle.dumps(value, protocol))
    assert scan.problem == b""
    assert scan.depth == depth_of(value)


@given(PLAIN)
def test_what_pickletools_optimized_passes_too(value):
    assert _core.scan_pickle(pickletools.optimize(pickle.dumps(value, 4))).problem == b""


class Runs:
    def __reduce__(self):
        return os.system, ("true",)


class Has:
    def __init__(self):
        self.state = 1


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_global_is_refused_by_name(protocol):
    data = pickle.dumps({"segments": Runs()}, protocol)
    scan = _core.scan_pickle(data)
    assert b"names the global posix.system" in scan.problem
    assert data[scan.offset : scan.offset + 1] in (b"c", b"\x93")


@pytest.mark.parametrize(
    "value", [Has(), {1, 2}, frozenset((1,)), b"bytes", bytearray(b"x"), 1j, range(3), int, 2**200, {1: 2}, {(1,): 2}]
)
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_whatever_is_not_plain_data_is_refused(value, protocol):
    assert _core.scan_pickle(pickle.dumps([value], protocol)).problem


@pytest.mark.parametrize(
    ("body", "problem", "offset"),
    [
        (b"]" * 10**6 + b"a" * (10**6 - 1) + b".", b"deeper than 64", 2 + 10**6 + 63),
        (
            b"]" * 10**7 + b"a" * (10**7 - 1) + b".",
            b"more lists, dicts and tuples",
            2 + (1 << 20) + (2 * 10**7 + 2) // 8,
        ),
        (b"(" * 10**6, b"deeper than 64", 2 + 64),
        (b")" + b"\x85" * 10**7 + b".", b"deeper than 64", 2 + 1 + 64),
        (b"]\x94h\x00a.", b"holds itself", 6),
        (b"]\x94]\x94h\x00ah\x00h\x01a.", b"changes a container", 13),
        (b"}\x94\x8c\x01xh\x00s.", b"holds itself", 9),
        (b"(]\x94l\x94h\x00h\x01a.", b"changes a container", 11),
        (b"]r\xff\xff\xff\xff.", b"memo index", 3),
        (b"h\x00.", b"memo does not hold", 2),
        (b"a.", b"takes a value", 2),
        (b"]a.", b"takes a value", 3),
        (b"e.", b"takes a mark", 2),
        (b"K\x01(K\x01e.", b"not a list", 7),
        (b"](u.", b"not a dict", 4),
        (b"}(\x8c\x01au.", b"a dict key without a value", 7),
        (b"\x86.", b"takes a value", 2),
        (b"(K\x01a.", b"takes a value", 5),
        (b"}}.", b"ends with 2 values", 4),
        (b".", b"ends with 0 values", 2),
        (b"}(.", b"ends with 1 values", 4),
        (b"}.}", b"1 bytes after the end", 4),
        (b"\x8a\xff" + b"\0" * 255 + b".", b"an integer of 255 bytes", 2),
        (b"\x8b\xff\xff\xff\x7f", b"an integer of 2147483647 bytes", 2),
        (b"X\xff\xff\xff\xff.", b"ends early", 8),
        (b"\x8d" + b"\xff" * 8 + b".", b"ends early", 12),
        (b"\x95" + b"\xff" * 8 + b".", b"ends early", 12),
        (b"Pname\n.", b"opcode 0x50", 2),
        (b"\x80\x04.", b"only there", 2),
        (b"", b"ends early", 2),
    ],
)
def test_hostile_pickles(body, problem, offset):
    scan = _core.scan_pickle(b"\x80\x04" + body)
    assert problem in scan.problem
    assert scan.offset == offset


def test_limits():
    many = b"\x80\x04(" + b"]" * 1_300_000 + b"l."
    assert b"more lists, dicts and tuples" in _core.scan_pickle(many).problem
    assert not _core.scan_pickle(many, bytes_per_container=1).problem
    assert b"more values" in _core.scan_pickle(pickle.dumps(list(range(100)), 4), items=50).problem
    assert b"deeper than 3" in _core.scan_pickle(pickle.dumps([[[[1]]]], 4), depth=3).problem
    assert not _core.scan_pickle(pickle.dumps([[[1]]], 4), depth=3).problem


@pytest.mark.parametrize("version", [0, 1, 6, 255])
def test_protocols(version):
    assert b"protocol" in _core.scan_pickle(bytes([0x80, version]) + b"}.").problem


@given(PLAIN, st.data())
def test_what_passes_after_damage_can_be_loaded(value, data):
    """The scan stumbles wherever Python would, but for text that is no UTF-8."""
    raw = bytearray(pickle.dumps(value, 4))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    if _core.scan_pickle(raw).problem == b"":
        try:
            loaded = pickle.loads(raw)
        except UnicodeDecodeError:
            return
        assert _core.scan_pickle(raw).depth == depth_of(loaded)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"[" * 10**7, b"deeper than 64"),
        (b'{"a":' * 1000, b"deeper than 64"),
        (b"[}", b"closes nothing"),
        (b"]", b"closes nothing"),
        (b"[[]", b"ends early"),
        (b'["[[[', b"ends early"),
        (b"[" + b"{}," * 3_000_000 + b"{}]", b"more lists and dicts"),
        (b"[[]]", b""),
        (b'["\\"[[[[", {"]": 1}]', b""),
    ],
)
def test_json(text, problem):
    found = _core.scan_json(text).problem
    assert problem in found
    assert bool(found) == bool(problem)
