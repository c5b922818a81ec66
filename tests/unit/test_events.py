"""Events cost driver calls: they are recorded while streams want each other's memory, and asked for ever less often."""

import pytest

from movie import _core

MIB = 1 << 20
ROUNDS = 4000


class Run:
    """An allocator on a model device: two streams that work, and free, in turn."""

    def __init__(self, name: str, card: int, lag: int) -> None:
        model = _core.ModelOptions()
        model.capacity, model.lag = card, lag
        self.device = _core.ModelDevice(model)
        self.allocator = _core.make_allocator(self.device, name, {})

    def work(self, mib: int, rounds: int, *, record: bool = False) -> None:
        for _ in range(rounds):
            for stream in (1, 2):
                self.device.advance(stream)
                block = self.allocator.malloc(mib * MIB, stream, 0)
                if record:
                    self.allocator.record_stream(block, 3 - stream)
                self.allocator.free(block)

    def calls(self, name: str) -> int:
        return int(self.device.ledger.count(name))


def test_where_no_stream_wants_memory_of_another_there_are_none() -> None:
    run = Run("movie", 1 << 40, lag=1000)
    run.work(16, ROUNDS)
    assert run.calls("event_record") == run.calls("event_query") == 0


def test_while_they_do_epochs_are_closed_while_they_are_young() -> None:
    run = Run("movie", 64 * MIB, lag=1000)
    for _ in range(200):  # each wants more than half of the card, so what the other used
        run.work(40, 1)
    assert run.calls("stream_wait") > 0
    before = run.calls("event_record")
    run.work(2, 2000)
    assert run.calls("event_record") > before + 10


def test_interest_in_the_memory_of_others_ends() -> None:
    run = Run("movie", 64 * MIB, lag=100)
    run.work(40, 4)
    run.work(2, 10_000)
    before = run.calls("event_record")
    run.work(2, 10_000)
    assert run.calls("event_record") == before


@pytest.mark.parametrize("name", ["movie", "movie-lean"])
def test_an_event_that_takes_long_is_asked_for_ever_less_often(name: str) -> None:
    run = Run(name, 1 << 40, lag=-1)  # nothing ever ends
    run.work(2, 1, record=True)
    outstanding = run.calls("event_record")
    assert outstanding > 0
    run.work(2, ROUNDS)
    # Once an operation would be 8,000 for each of two streams.
    assert 0 < run.calls("event_query") < 2 * 16 * 16


@pytest.mark.parametrize("lag", [10, 100, 1000])
def test_what_is_asked_for_less_often_is_not_known_much_later(lag: int) -> None:
    run = Run("movie", 1 << 40, lag=lag)
    block = run.allocator.malloc(100_000, 1, 0)
    run.allocator.record_stream(block, 2)
    run.device.advance(2)
    run.allocator.free(block)
    waited = 0
    while run.allocator.statistics()["active.all.current"] > 0 and waited < 4 * lag:
        waited += 1
        run.device.advance(2)
        run.allocator.free(run.allocator.malloc(1, 1, 0))
    assert run.device.ledger.count("event_query") > 0
    assert waited <= lag * (1 + 1 / 8) + 4
