"""Bytes on the phantom: what kernels of several late streams write stays what they wrote, also under CUDA graphs."""

import pytest
from torch_child import bridge_cache, printed

__all__ = ["bridge_cache"]  # a fixture
pytestmark = pytest.mark.slow

# The phantom computes nothing, but in bytes mode it fills and copies memory for real, when the late stream gets there.
_STREAMS = """
import ctypes, json, random, sys
operations = int({operations})
draw = random.Random(7)
streams = [torch.cuda.default_stream(), *(torch.cuda.Stream() for _ in range(3))]
core = movie._core.torch
held, wrong, checked = [], 0, 0

def fill(stream, tensor, value):
    with torch.cuda.stream(stream):
        cuda.cudaMemsetAsync(ctypes.c_void_p(tensor.data_ptr()), value, ctypes.c_size_t(tensor.numel()),
                             ctypes.c_void_p(stream.cuda_stream))

def check(stream, tensor, value):
    # Copied to the host in the order of the stream, and looked at when that is done.
    found = torch.empty(tensor.numel(), dtype=torch.uint8, pin_memory=True)
    cuda.cudaMemcpyAsync(ctypes.c_void_p(found.data_ptr()), ctypes.c_void_p(tensor.data_ptr()),
                         ctypes.c_size_t(tensor.numel()), 2, ctypes.c_void_p(stream.cuda_stream))
    return found, value

cuda = ctypes.CDLL(None)
looks = []
for number in range(operations):
    home = draw.choice(streams)
    if held and (len(held) > 90 or draw.random() < 0.45):
        tensor, value, owner = held.pop(draw.randrange(len(held)))
        user = draw.choice(streams)
        if user is not owner:
            user.wait_stream(owner)
            {record}
        looks.append(check(user, tensor, value))
        del tensor
    else:
        size = draw.choices([700, 5000, 60_000, 1 << 20, 3 << 20], [40, 40, 40, 4, 2])[0] + draw.randrange(512)
        with torch.cuda.stream(home):
            tensor = torch.empty(size, dtype=torch.uint8, device="cuda")
        value = draw.randrange(1, 255)
        fill(home, tensor, value)
        held.append((tensor, value, home))
        del tensor
    if len(looks) > 200:
        torch.cuda.synchronize()
        for found, value in looks:
            checked += 1
            wrong += not bool((found == value).all())
        looks.clear()
torch.cuda.synchronize()
print(json.dumps([checked, wrong, cuda.movie_phantom_violations(), core.views(0)["created"],
                  core.account(0).count("stream_wait")]))
"""
_RECORD = "tensor.record_stream(user)"
_TIGHT = {"memory": 560_000_000, "MOVIE_PHANTOM_BYTES": "1", "lag": 60, "seed": 11, "MOVIE_POLICY": "lean"}


@pytest.mark.timeout(1600)
def test_nothing_is_overwritten_early():
    code = _STREAMS.replace("{operations}", "100000").replace("{record}", _RECORD)
    checked, wrong, violations, views, waits = printed(code, **_TIGHT, timeout=1500)
    assert checked > 25000
    assert (wrong, violations) == (0, 0)
    assert views > 0
    assert waits > 0


def test_without_record_stream_it_shows():
    """The test can fail: a program that does not say which stream uses its memory loses it."""
    code = _STREAMS.replace("{operations}", "6000").replace("{record}", "pass")
    _, wrong, _, _, _ = printed(code, **_TIGHT)
    assert wrong > 0


_GRAPH = """
import ctypes, json
cuda = ctypes.CDLL(None)
MIB = 1 << 20

def tensor(bytes_):
    return torch.empty(bytes_, dtype=torch.uint8, device="cuda")

def fill(block, value):
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    assert cuda.cudaMemsetAsync(ctypes.c_void_p(block.data_ptr()), value, ctypes.c_size_t(block.numel()), stream) == 0

def byte_of(block):
    return int(block[-1:].cpu()[0])

# Free ranges of all sizes, so that there is something to stitch.
churn = [tensor((3 + i % 5) * MIB) for i in range(24)]
del churn[::2]
graph, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    inside = tensor(20 * MIB)
    fill(inside, 7)
    gone = tensor(9 * MIB)
    fill(gone, 8)
    del gone
with torch.cuda.graph(second, pool=graph.pool()):
    other = tensor(9 * MIB)
    fill(other, 9)
addresses = {inside.data_ptr(), other.data_ptr()}
seen = []
for round in range(30):
    eager = [tensor((2 + (round + i) % 30) * MIB) for i in range(12)]
    for block in eager:
        fill(block, 100 + round)
    (graph if round % 2 else second).replay()
    torch.cuda.synchronize()
    seen.append([byte_of(block) == 100 + round for block in eager])
    # The graphs share a pool: what one has freed is the other's, so each is looked at after its own replay.
    seen.append([byte_of(inside) == 7] if round % 2 else [byte_of(other) == 9])
    if round > 1:
        seen.append([byte_of(inside) == 7])
    del eager
    if round % 7 == 0:
        torch.cuda.empty_cache()
print(json.dumps([all(map(all, seen)), cuda.movie_phantom_violations(),
                  {inside.data_ptr(), other.data_ptr()} == addresses, len(seen)]))
"""


@pytest.mark.parametrize("bridge", ["off", "require"])
@pytest.mark.parametrize("policy", ["auto", "lean"])
def test_what_a_graph_holds_stays_put(policy, bridge, bridge_cache):
    good, violations, same, looks = printed(
        _GRAPH,
        memory=2_000_000_000,
        MOVIE_PHANTOM_BYTES="1",
        lag=20,
        seed=2,
        MOVIE_POLICY=policy,
        MOVIE_BRIDGE=bridge,
        XDG_CACHE_HOME=str(bridge_cache),
    )
    assert good
    assert same
    assert violations == 0
    assert looks > 50
