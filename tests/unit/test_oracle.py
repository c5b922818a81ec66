"""The oracle: recordings that `native` itself makes are predicted exactly, recordings that were changed are not."""

from dataclasses import replace as changed

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from trace_builder import TraceBuilder

from movie import _core
from movie.evaluate.fidelity import TIE_RULES, can_check, check_native
from movie.evaluate.settings import native_options
from movie.trace.model import Action

MIB = 1 << 20


class Recorder:
    """Drives `native` and writes down what it did, as PyTorch would."""

    def __init__(self, tie: str, builder: TraceBuilder | None = None) -> None:
        self.allocator = _core.make_allocator(_core.ModelDevice(), "native", {"tie": tie})
        self.trace = builder or TraceBuilder()
        self.addresses: dict[int, int] = {}

    def alloc(self, size: int, stream: int = 0, pool: int = 0) -> int:
        before = self.allocator.statistics()
        address = self.allocator.malloc(size, stream, pool)
        after = self.allocator.statistics()
        grown = after["reserved_bytes.all.current"] - before["reserved_bytes.all.current"]
        if grown:
            self.trace.row(Action.SEGMENT_ALLOC, grown, address=address, stream=stream, pool=pool)
        block = self.trace.alloc(size, stream, pool, address)
        self.addresses[block] = address
        return block

    def free(self, block: int) -> None:
        self.allocator.free(self.addresses.pop(block))
        self.trace.free(block)


@st.composite
def recordings(draw):
    recorder = Recorder(draw(st.sampled_from(TIE_RULES)))
    sizes = st.sampled_from([1, 512, 3000, MIB, MIB + 1, 3 * MIB, 5 * MIB, 9 * MIB, 12 * MIB, 33 * MIB])
    for _ in range(draw(st.integers(1, 60))):
        if draw(st.booleans()) or not recorder.addresses:
            recorder.alloc(draw(sizes), stream=draw(st.integers(0, 1)), pool=draw(st.integers(0, 1)))
        else:
            recorder.free(draw(st.sampled_from(sorted(recorder.addresses))))
    return recorder


@given(recordings())
def test_what_native_recorded_is_predicted_exactly(recorder):
    result = check_native(recorder.trace.build())
    assert result.exact, result
    assert result.allocations > 0
    assert result.first_wrong_row is None


@given(recordings(), st.data())
@settings(max_examples=50)
def test_a_changed_address_is_noticed(recorder, data):
    trace = recorder.trace.build()
    row = data.draw(st.sampled_from(np.flatnonzero(trace.action == Action.ALLOC).tolist()))
    address = trace.address.copy()
    address[trace.id == trace.id[row]] += 512  # consistently, so that only the choice is wrong
    result = check_native(changed(trace, address=address))
    assert result.wrong_addresses > 0
    assert result.first_wrong_row == row


@pytest.mark.parametrize("tie", TIE_RULES)
def test_the_tie_rule_that_fits_is_reported(tie):
    recorder = Recorder(tie)
    blocks = [recorder.alloc(5 * MIB) for _ in range(8)]  # in two segments, the second at lower addresses
    for index in (0, 3, 4):
        recorder.free(blocks[index])
    assert check_native(recorder.trace.build()).ties == ("address", "segment")  # nothing to tell them apart yet
    recorder.alloc(5 * MIB)
    result = check_native(recorder.trace.build())
    assert (result.tie, result.ties, result.exact) == (tie, (tie,), True)


def test_a_segment_that_was_not_needed_is_unexpected():
    t = TraceBuilder()
    t.row(Action.SEGMENT_ALLOC, 20 * MIB, address=20 * MIB)
    t.free(t.alloc(12 * MIB, address=20 * MIB))
    t.row(Action.SEGMENT_ALLOC, 12 * MIB, address=60 * MIB)
    t.alloc(12 * MIB, address=60 * MIB)
    result = check_native(t.build())
    assert (result.unexpected_segments, result.missing_segments, result.wrong_addresses) == (1, 0, 0)


def test_a_segment_that_was_needed_but_not_allocated_is_missing():
    t = TraceBuilder()
    t.row(Action.SEGMENT_ALLOC, 20 * MIB, address=20 * MIB)
    t.alloc(12 * MIB, address=20 * MIB)
    t.alloc(12 * MIB, address=60 * MIB)
    result = check_native(t.build())
    assert (result.missing_segments, result.wrong_addresses, result.lost) == (1, 1, 1)


def test_a_segment_of_another_size_is_wrong():
    t = TraceBuilder()
    t.row(Action.SEGMENT_ALLOC, 22 * MIB, address=20 * MIB)
    t.alloc(5 * MIB, address=20 * MIB)
    result = check_native(t.build())
    assert (result.wrong_segment_sizes, result.wrong_addresses) == (1, 0)


def test_freeing_a_segment_that_is_in_use_is_lost():
    t = TraceBuilder()
    t.row(Action.SEGMENT_ALLOC, 20 * MIB, address=20 * MIB)
    t.alloc(5 * MIB, address=20 * MIB)
    t.row(Action.SEGMENT_FREE, 20 * MIB, address=20 * MIB)
    assert check_native(t.build()).lost == 1


def test_after_a_wrong_guess_the_recording_is_followed():
    t = TraceBuilder()
    t.row(Action.SEGMENT_ALLOC, 20 * MIB, address=20 * MIB)
    t.alloc(5 * MIB, address=28 * MIB)  # expected at the front
    t.alloc(5 * MIB, address=20 * MIB)  # best fit of the two holes, 8 and 7 MiB, would be at 33
    t.alloc(7 * MIB, address=33 * MIB)  # the only one left that is large enough
    result = check_native(t.build())
    assert (result.wrong_addresses, result.lost, result.missing_segments) == (2, 0, 0)


# --- start states -----------------------------------------------------------------------------------------------------


def test_a_start_state_is_adopted():
    t = TraceBuilder()
    t.segment(20 * MIB, 20 * MIB)
    a = t.start(5 * MIB, address=20 * MIB)
    t.start(5 * MIB, address=30 * MIB)
    b = t.alloc(5 * MIB, address=25 * MIB)
    t.free(a)
    t.free(b)
    t.alloc(10 * MIB, address=20 * MIB)
    t.alloc(4 * MIB, address=35 * MIB)
    assert check_native(t.build()).exact


def test_the_first_block_behind_tells_where_a_start_block_ends():
    t = TraceBuilder()
    t.segment(20 * MIB, 20 * MIB)
    a = t.start(5 * MIB, address=20 * MIB)  # really 5.5 MiB
    t.start(10 * MIB, address=30 * MIB)
    b = t.alloc(3 * MIB, address=int(25.5 * MIB))
    t.free(a)
    t.free(b)
    t.alloc(int(5.5 * MIB), address=20 * MIB)
    result = check_native(t.build())
    assert result.exact
    assert result.resized_start_blocks == 1


def test_a_hole_that_was_passed_over_tells_how_small_it_is():
    t = TraceBuilder()
    t.segment(20 * MIB, 20 * MIB)
    t.segment(100 * MIB, 20 * MIB)
    a = t.start(5 * MIB, address=20 * MIB)  # with a rest of at least 0.25 MiB: the hole behind is below 4.75 MiB
    t.start(10 * MIB, address=30 * MIB)
    t.start(14 * MIB, address=100 * MIB)
    t.alloc(int(4.75 * MIB), address=114 * MIB)  # the hole of 6 MiB
    t.free(a)
    result = check_native(t.build())
    assert result.exact
    assert result.resized_start_blocks == 1


def test_a_block_that_lives_to_the_end_has_the_size_it_has():
    t = TraceBuilder()
    t.segment(20 * MIB, 20 * MIB)
    t.segment(100 * MIB, 20 * MIB)
    t.start(5 * MIB, address=20 * MIB)
    t.start(10 * MIB, address=30 * MIB)
    t.start(14 * MIB, address=100 * MIB)
    t.alloc(int(4.75 * MIB), address=114 * MIB)
    result = check_native(t.build())
    assert (result.wrong_addresses, result.resized_start_blocks) == (1, 0)


def test_a_rest_beyond_1_mib_is_no_explanation():
    t = TraceBuilder()
    t.segment(20 * MIB, 20 * MIB)
    t.segment(100 * MIB, 20 * MIB)
    a = t.start(5 * MIB, address=20 * MIB)
    t.start(10 * MIB, address=30 * MIB)
    t.start(14 * MIB, address=100 * MIB)
    t.alloc(3 * MIB, address=114 * MIB)  # the hole behind a has at least 4 MiB
    t.free(a)
    result = check_native(t.build())
    assert (result.wrong_addresses, result.resized_start_blocks) == (1, 0)


def test_start_blocks_outside_their_segments_are_refused():
    t = TraceBuilder()
    t.segment(20 * MIB, 20 * MIB)
    t.start(5 * MIB, address=38 * MIB)
    t.alloc(5 * MIB, address=20 * MIB)
    with pytest.raises(ValueError, match="start"):
        check_native(t.build())


# --- what can be checked ----------------------------------------------------------------------------------------------


def test_traces_without_choices_of_native_are_turned_down():
    t = TraceBuilder()
    t.alloc(5 * MIB)
    assert not can_check(t.build())  # no addresses
    with pytest.raises(ValueError, match="does not record"):
        check_native(t.build())
    t = TraceBuilder()
    t.row(Action.SEGMENT_MAP, 20 * MIB, address=20 * MIB)
    t.alloc(5 * MIB, address=20 * MIB)
    assert not can_check(t.build())  # expandable segments


def test_settings_are_those_of_the_recording():
    t = TraceBuilder()
    t.row(Action.SEGMENT_ALLOC, 34 * MIB, address=100 * MIB)
    t.alloc(33 * MIB, address=100 * MIB)
    plain = t.build()
    divisions = {str(1 << i): 4 for i in range(16)}
    trace = changed(plain, settings={"roundup_power2_divisions": divisions, "max_split_size": -1})
    assert check_native(plain).exact
    assert check_native(trace).wrong_segment_sizes == 1  # would have been 40 MiB


@pytest.mark.parametrize(
    ("recorded", "options"),
    [
        ({}, {}),
        ({"max_split_size": -1, "garbage_collection_threshold": 0.0, "expandable_segments": False}, {}),
        ({"max_split_size": 200 * MIB}, {"max_split_size": str(200 * MIB)}),
        ({"garbage_collection_threshold": 0.8}, {"garbage_collection_threshold": "0.8"}),
        ({"roundup_power2_divisions": {str(1 << i): 0 for i in range(16)}}, {}),
        (
            {"roundup_power2_divisions": {str(1 << i): i % 3 for i in range(16)}},
            {"roundup_power2_divisions": "0/1/2/0/1/2/0/1/2/0/1/2/0/1/2/0"},
        ),
        (
            {"PYTORCH_CUDA_ALLOC_CONF": "large_segment_size_mb:64, max_non_split_rounding_mb:32"},
            {"large_segment_size": str(64 * MIB), "max_non_split_rounding": str(32 * MIB)},
        ),
    ],
)
def test_recorded_settings_as_options(recorded, options):
    t = TraceBuilder()
    t.alloc(1)
    trace = changed(t.build(), settings=recorded)
    assert native_options(trace) == options
    _core.make_allocator(_core.ModelDevice(), "native", native_options(trace))


def test_the_split_limit_of_a_case_is_an_option():
    t = TraceBuilder()
    t.alloc(1)
    assert native_options(changed(t.build(), split_limit=64 * MIB)) == {"max_split_size": str(64 * MIB)}


def test_settings_that_are_no_numbers_are_refused():
    t = TraceBuilder()
    t.alloc(1)
    with pytest.raises(ValueError, match="max_split_size"):
        native_options(changed(t.build(), settings={"max_split_size": "big"}))
