"""What waits cost where streams run side by side: cases small enough to be worked out by hand.

A row is work of one row's length. A stretch of one stream runs beside the stretch before it, and after all others.
"""

from __future__ import annotations

import random

import pytest

from movie import _core

MAIN, SIDE = 1, 2
FAR = 10_000  # a lead that no case comes to


def device(lag: int = FAR) -> _core.ModelDevice:
    options = _core.ModelOptions()
    options.capacity = 1 << 30
    options.lag = lag
    return _core.ModelDevice(options)


def rows(card: _core.ModelDevice, stream: int, count: int) -> None:
    for _ in range(count):
        card.advance(stream)


def wait(card: _core.ModelDevice, stream: int, for_stream: int) -> None:
    card.stream_wait(stream, card.event_record(for_stream))


def test_a_stream_that_waits_for_itself_loses_nothing() -> None:
    card = device()
    for _ in range(5):
        rows(card, MAIN, 10)
        wait(card, MAIN, MAIN)
    assert card.delay == 0
    assert card.ledger.stalled_rows > 0, "the bound, which supposes that nothing was queued before"


def test_a_wait_takes_away_what_would_have_run_side_by_side() -> None:
    """The side stream's 4 rows end at 14 instead of 4; of that the 10 rows after them make good for all."""
    card = device()
    rows(card, MAIN, 10)
    wait(card, SIDE, MAIN)
    rows(card, SIDE, 4)
    assert card.delay == 4
    rows(card, MAIN, 10)
    assert card.delay == 0


def test_a_wait_for_a_longer_stretch_costs_the_rest_of_it() -> None:
    """Main would go on at 10 and end at 20, the side stream at 40; now main goes on at 40."""
    card = device()
    rows(card, MAIN, 10)
    rows(card, SIDE, 40)
    wait(card, MAIN, SIDE)
    rows(card, MAIN, 10)
    assert card.delay == 10


def test_what_had_to_be_finished_anyway_costs_nothing() -> None:
    """The last stretch but one: the program itself is supposed to need it."""
    card = device()
    rows(card, SIDE, 40)
    event = card.event_record(SIDE)
    rows(card, MAIN, 10)
    rows(card, 3, 10)
    card.stream_wait(MAIN, event)
    rows(card, MAIN, 10)
    assert card.delay == 0


@pytest.mark.parametrize("how", ["event_synchronize", "synchronize", "mfree"])
def test_a_host_that_waits_keeps_streams_from_running_side_by_side(how: str) -> None:
    """The side stream's 10 rows could have begun with main's 10."""
    card = device()
    block = card.malloc(1 << 20)
    rows(card, MAIN, 10)
    if how == "event_synchronize":
        card.event_synchronize(card.event_record(MAIN))
    elif how == "synchronize":
        card.synchronize()
    else:
        card.mfree(block)
    rows(card, SIDE, 10)
    assert card.delay == 10


def test_waiting_of_the_program_itself_is_nobodys_delay() -> None:
    card = device()
    rows(card, MAIN, 10)
    card.finish_all()
    rows(card, SIDE, 10)
    assert card.delay == 0


def test_the_host_is_no_further_ahead_than_its_lead() -> None:
    """With a lead of 5 rows the side stream begins when main's sixth row has ended: a wait costs it 4 rows, not 10."""
    card = device(lag=5)
    rows(card, MAIN, 10)
    wait(card, SIDE, MAIN)
    rows(card, SIDE, 10)
    assert card.delay == 4


def test_a_device_without_lag_never_waits() -> None:
    card = device(lag=0)
    for stream in (MAIN, SIDE, 3, MAIN, SIDE):
        rows(card, stream, 7)
        card.stream_wait(MAIN, card.event_record(stream))
    assert card.delay == 0


def test_work_that_the_trace_alone_knows_of() -> None:
    card = device()
    rows(card, MAIN, 3)
    card.plan(-1, 8)
    card.stream_wait(MAIN, card.event_record(-1))
    rows(card, MAIN, 1)
    assert card.delay == 5


@pytest.mark.parametrize("seed", range(20))
def test_a_delay_is_never_negative_and_never_more_than_the_bound(seed: int) -> None:
    draw = random.Random(seed)
    card = device(lag=draw.choice([1, 10, 100]))
    for _ in range(300):
        rows(card, draw.randint(1, 4), draw.randint(1, 20))
        if draw.random() < 0.3:
            wait(card, draw.randint(1, 4), draw.randint(1, 4))
        assert 0 <= card.delay <= card.ledger.stalled_rows
