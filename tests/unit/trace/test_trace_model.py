"""A trace whose columns disagree is found out."""

from dataclasses import replace

import numpy as np
import pytest

from movie.trace import Action, StartBlocks, Trace
from movie.trace.model import LARGEST, same

A, R, C, USE, MARK, SYNC = (
    Action.ALLOC,
    Action.FREE_REQUESTED,
    Action.FREE_COMPLETED,
    Action.USE,
    Action.MARK,
    Action.SYNC,
)


def trace(*rows, **more):
    """Rows of (action, id)."""
    action, ids = zip(*rows, strict=True)
    sizes = [0 if a in (USE, MARK, SYNC) else 10 for a in action]
    return Trace(
        action=np.array(action, dtype=np.uint8),
        id=np.array(ids, dtype=np.int64),
        bytes=np.array(sizes, dtype=np.int64),
        stream=np.zeros(len(rows), dtype=np.int64),
        pool=np.zeros(len(rows), dtype=np.int64),
        address=np.zeros(len(rows), dtype=np.uint64),
        time_us=np.zeros(len(rows), dtype=np.int64),
        phase=np.array([0 if a == MARK else -1 for a in action], dtype=np.int32),
        phases=("step",),
        **more,
    )


def start(*pending):
    n = len(pending)
    return StartBlocks(
        bytes=np.full(n, 10),
        size=np.full(n, 512),
        address=np.zeros(n, dtype=np.uint64),
        stream=np.zeros(n, dtype=np.int64),
        pool=np.zeros(n, dtype=np.int64),
        pending=np.array(pending, dtype=np.bool_),
    )


GOOD = trace((MARK, -1), (A, 2), (R, 0), (USE, 2), (C, 0), (C, 1), (R, 2), (A, 3), (SYNC, -1), start=start(False, True))


def test_a_good_trace():
    assert GOOD.check() is GOOD
    assert (len(GOOD), GOOD.ids, GOOD.allocations) == (9, 4, 2)
    assert same(GOOD, replace(GOOD, path="elsewhere"))
    assert not same(GOOD, replace(GOOD, capacity=1))
    assert not same(GOOD, replace(GOOD, start=start(False, False)))
    assert not same(GOOD, replace(GOOD, stream=GOOD.stream + 1))


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ([(A, 1)], r"id\[0\]: allocations are not numbered in order"),
        ([(A, 0), (A, 0)], r"id\[1\]: allocations are not numbered in order"),
        ([(R, 0)], r"id\[0\]: no such block"),
        ([(A, 0), (R, -1)], r"id\[1\]: no such block"),
        ([(A, 0), (R, 1), (A, 1)], r"id\[1\]: free_requested of a block that is not allocated yet"),
        ([(A, 0), (R, 0), (R, 0)], r"id\[2\]: free_requested of a block for the second time"),
        ([(A, 0), (C, 0)], r"id\[1\]: free_completed of a block that is not freed yet"),
        ([(A, 0), (C, 0), (R, 0)], r"id\[1\]: free_completed of a block that is not freed yet"),
        ([(A, 0), (R, 0), (C, 0), (C, 0)], r"id\[3\]: free_completed of a block for the second time"),
        ([(A, 0), (R, 0), (USE, 0)], r"id\[2\]: use of a block that is not alive"),
        ([(USE, 0), (A, 0)], r"id\[0\]: use of a block that is not alive"),
        ([(SYNC, 0), (A, 0)], r"id\[0\]: an id on a row that is of no block"),
    ],
)
def test_lives(rows, what):
    with pytest.raises(ValueError, match=what):
        trace(*rows).check()


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"bytes": GOOD.bytes - 11}, r"bytes\[0\]: not a size"),
        ({"bytes": np.where(GOOD.action == A, 0, GOOD.bytes)}, r"bytes\[1\]: an allocation of nothing"),
        ({"bytes": GOOD.bytes + np.arange(9)}, r"bytes\[2\]: differs from the block's allocation"),
        ({"address": GOOD.address + np.arange(9, dtype=np.uint64)}, r"address\[2\]: differs"),
        ({"stream": GOOD.stream[1:]}, "stream: 8 entries where other columns have 9"),
        ({"stream": GOOD.stream.astype(np.int32)}, "stream: int32, not int64"),
        ({"time_us": GOOD.time_us.reshape(3, 3)}, "time_us: not a one-dimensional array"),
        ({"pool": GOOD.pool + 1}, r"pool\[0\]: no such pool"),
        ({"phases": ()}, r"phase\[0\]: not a phase"),
        ({"phase": np.zeros(9, dtype=np.int32)}, r"phase\[1\]: not a phase"),
        ({"action": GOOD.action + np.uint8(100)}, r"action\[0\]: no such action"),
        ({"capacity": -1}, "capacity: not a size"),
        ({"start_reserved": LARGEST + 1}, "start_reserved: not a size"),
        ({"start": replace(GOOD.start, size=np.array([-1, 0]))}, r"start.size\[0\]: not a size"),
        ({"start": replace(GOOD.start, pending=np.array([True, True]))}, r"id\[2\]: free_requested .* second time"),
    ],
)
def test_columns(change, what):
    with pytest.raises(ValueError, match=what):
        replace(GOOD, **change).check()


def test_sums_fit_in_64_bits():
    huge = trace((A, 0), (R, 0), (C, 0), (A, 1))
    replace(huge, bytes=np.full(4, LARGEST // 2)).check()
    with pytest.raises(ValueError, match="add up to more than"):
        replace(huge, bytes=np.full(4, LARGEST // 2 + 1024)).check()
