"""The real PyTorch on the phantom card: its allocators, streams, graphs, several cards, and bytes that come back."""

import json

import pytest
from phantom_child import output_on_phantom, run_on_phantom
from torch_build import require_cuda_torch

ALLOCATORS = pytest.mark.parametrize("allocator", ["", "expandable_segments:True"], ids=["native", "expandable"])


@pytest.fixture(autouse=True)
def _torch() -> None:
    require_cuda_torch()


def _lines(code: str, allocator: str = "", **settings: object) -> list[str]:
    variables = {"PYTORCH_CUDA_ALLOC_CONF": allocator} if allocator else {}
    return output_on_phantom(code, **{**settings, **variables}).splitlines()


TRAINING = """
import torch

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).cuda()
optimizer = torch.optim.AdamW(model.parameters())
copies = torch.cuda.Stream()
torch.cuda.memory._record_memory_history(context=None)
for step in range(6):
    x = torch.randn(4, 64 + 32 * (step * 5 % 7), 256, device="cuda")
    with torch.cuda.stream(copies):
        copies.wait_stream(torch.cuda.current_stream())
        y = x * 2
        y.record_stream(torch.cuda.current_stream())
    torch.cuda.current_stream().wait_stream(copies)
    model(y).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    del x, y
"""

EVENTS = (
    TRAINING
    + """
import json
history = torch.cuda.memory._snapshot()["device_traces"][0]
print(json.dumps([[one["action"], one["addr"], one["size"], one["stream"] != 0] for one in history]))
print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
"""
)


@ALLOCATORS
def test_two_runs_of_one_seed_are_equal_event_by_event(allocator: str) -> None:
    first, again, other = (_lines(EVENTS, allocator, lag=40, seed=seed) for seed in (3, 3, 4))
    assert first == again
    events = json.loads(first[0])
    assert len(events) > 1000
    # Another lateness changes what is reused when; what the program asks for stays the same.
    asked = [[one[2] for one in json.loads(run[0]) if one[0] == "alloc"] for run in (first, other)]
    assert asked[0] == asked[1]


@ALLOCATORS
def test_reserved_memory_is_what_the_card_counts(allocator: str) -> None:
    code = (
        TRAINING
        + """
import ctypes
cuda = ctypes.CDLL(None)
cuda.movie_phantom_peak.restype = ctypes.c_uint64
outside = 32 << 20  # workspaces that the libraries take for themselves
print(0 <= cuda.movie_phantom_peak(0) - torch.cuda.max_memory_reserved() <= outside)
total = torch.cuda.mem_get_info()[1]
print(total == torch.cuda.get_device_properties(0).total_memory)
cuda.movie_phantom_violations.restype = ctypes.c_uint64
del model, optimizer
torch.cuda.empty_cache()
print(cuda.movie_phantom_violations())
"""
    )
    assert _lines(code, allocator, lag=100) == ["True", "True", "0"]


@ALLOCATORS
def test_a_full_card_is_an_error_of_torch(allocator: str) -> None:
    code = """
        import torch
        kept = []
        try:
            while True:
                kept.append(torch.empty(100 << 20, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError as error:
            print(len(kept), "2.00 GiB" in str(error), "this process has 1.97 GiB" in str(error))
    """
    assert _lines(code, allocator, memory=2 << 30) == ["16 True True"]


@ALLOCATORS
def test_values_come_back_from_streams_and_other_cards(allocator: str) -> None:
    code = """
        import torch
        values = torch.arange(500_000, dtype=torch.int64)
        streams = [torch.cuda.Stream() for _ in range(3)]
        here = values.pin_memory().to("cuda:0", non_blocking=True)
        for stream in streams:
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                copy = here.clone()
                copy.record_stream(torch.cuda.current_stream())
                here = copy
            torch.cuda.current_stream().wait_stream(stream)
        there = here.to("cuda:1", non_blocking=True)
        back = there.to("cpu")
        print(bool((back == values).all()))
    """
    assert _lines(code, allocator, count=2, lag=-1, MOVIE_PHANTOM_BYTES="1") == ["True"]


@ALLOCATORS
def test_a_training_step_in_a_graph(allocator: str) -> None:
    code = """
        import ctypes
        import torch
        model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256)).cuda()
        optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
        x = torch.randn(64, 256, device="cuda")

        def step():
            optimizer.zero_grad(set_to_none=True)
            model(x).square().mean().backward()
            optimizer.step()

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        cuda = ctypes.CDLL(None)
        cuda.movie_phantom_launches.restype = ctypes.c_uint64
        torch.cuda.synchronize()
        before = cuda.movie_phantom_launches()
        graph.replay()
        once = cuda.movie_phantom_launches() - before
        graph.replay()
        graph.replay()
        torch.cuda.synchronize()
        print(once > 20, cuda.movie_phantom_launches() - before == 3 * once)
        del graph
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    """
    assert _lines(code, allocator, lag=50) == ["True True"]


def test_workers_of_a_data_loader_live_without_the_card() -> None:
    code = """
        import torch

        class Numbers(torch.utils.data.Dataset):
            def __len__(self):
                return 64
            def __getitem__(self, at):
                return torch.full((8,), at)

        torch.zeros(1, device="cuda")
        seen = 0
        for batch in torch.utils.data.DataLoader(Numbers(), batch_size=8, num_workers=2, pin_memory=True):
            seen += batch.to("cuda", non_blocking=True).shape[0]
        print(seen)
    """
    result = run_on_phantom(code, lag=100)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "64\n"
