"""What the recorder notes of private pools in a torch whose history does not name them; with a made-up torch."""

from types import SimpleNamespace
from typing import Any

import pytest

from movie.child.private_pools import PrivatePools


class Card:
    """One device: its segments, and how many events there were."""

    def __init__(self) -> None:
        self.segments: list[dict[str, Any]] = []
        self.events = 0
        self.looks = 0

    def snapshot(self) -> dict[str, Any]:
        self.looks += 1
        return {"segments": list(self.segments), "device_traces": [[{}] * self.events]}

    def add(self, address: int, pool: tuple[int, int]) -> None:
        self.events += 1
        self.segments.append({"device": 0, "address": address, "total_size": 4096, "segment_pool_id": pool})

    def give_back(self) -> None:
        self.segments.clear()


def torch_of(version: str, card: Card) -> Any:
    class Graph:
        def capture_end(self) -> None:
            card.add(8192, (0, 1))

        def reset(self) -> None:
            pass

    class MemPool:
        pass

    native = SimpleNamespace(
        _cuda_emptyCache=card.give_back,
        _cuda_endAllocateToPool=lambda: card.add(16384, (2, 0)),
    )
    memory = SimpleNamespace(_snapshot=card.snapshot, _cuda_endAllocateToPool=native._cuda_endAllocateToPool)
    cuda = SimpleNamespace(CUDAGraph=Graph, MemPool=MemPool, memory=memory)
    return SimpleNamespace(__version__=version, _C=native, cuda=cuda)


@pytest.fixture
def card() -> Card:
    card = Card()
    card.add(4096, (0, 0))
    return card


def test_a_graph_is_noted_before_the_cache_is_emptied(card):
    torch = torch_of("2.8.0+cu128", card)
    pools = PrivatePools(torch)
    torch._C._cuda_emptyCache()
    assert (pools.segments, card.looks) == ([], 0)  # nothing to see before the first graph
    torch.cuda.CUDAGraph().capture_end()
    torch._C._cuda_emptyCache()
    assert pools.segments == [[0, 2, 8192, 4096, (0, 1)]]
    torch._C._cuda_emptyCache()
    assert card.looks == 1  # nothing new since


def test_a_pool_is_noted_before_it_goes(card):
    torch = torch_of("2.6.0", card)
    pools = PrivatePools(torch)
    pool = torch.cuda.MemPool()
    torch.cuda.memory._cuda_endAllocateToPool()
    del pool
    assert pools.segments == [[0, 2, 16384, 4096, (2, 0)]]


def test_a_graph_is_noted_before_it_is_reset(card):
    torch = torch_of("2.6.0", card)
    pools = PrivatePools(torch)
    graph = torch.cuda.CUDAGraph()
    graph.capture_end()
    graph.reset()
    assert len(pools.segments) == 1


@pytest.mark.parametrize("version", ["2.9.1", "2.10.0+cu128", "2.14.1"])
def test_nothing_is_done_where_events_name_their_pools(card, version):
    torch = torch_of(version, card)
    pools = PrivatePools(torch)
    torch.cuda.CUDAGraph().capture_end()
    torch._C._cuda_emptyCache()
    assert (pools.segments, card.looks) == ([], 0)


def test_nothing_is_done_after_the_end(card):
    torch = torch_of("2.6.0", card)
    pools = PrivatePools(torch)
    torch.cuda.CUDAGraph().capture_end()
    pools.stop()
    torch._C._cuda_emptyCache()
    assert card.looks == 0
