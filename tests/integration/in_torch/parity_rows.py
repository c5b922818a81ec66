"""What PyTorch offers around memory, each as a function that fails where MOVie does not keep it.

A program for a phantom: it prints, as JSON, how each row of the tables in docs/pytorch.md ended.

A row returns nothing and raises AssertionError where an answer is wrong. `Refused` rows say which error they expect.
"""

import gc
import io
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch._inductor import cudagraph_trees
from torch.profiler import ProfilerActivity, profile

MIB = 1 << 20
_rows: dict[str, Callable[[], None]] = {}


def row(name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def add(function: Callable[[], None]) -> Callable[[], None]:
        _rows[name] = function
        return function

    return add


def tensor(bytes_: int, device: str = "cuda") -> torch.Tensor:
    return torch.empty(bytes_, dtype=torch.uint8, device=device)


def allocated() -> int:
    return torch.cuda.memory_allocated()


def refusal_of(bytes_: int) -> str:
    """What is said where so much memory cannot be had."""
    try:
        tensor(bytes_)
    except torch.OutOfMemoryError as error:
        return str(error)
    raise AssertionError("there was memory")


# --- torch.cuda.memory -----------------------------------------------------------------------------------------------


@row("caching_allocator_alloc")
def _() -> None:
    before = allocated()
    address = torch.cuda.caching_allocator_alloc(3 * MIB)
    assert address
    assert allocated() - before == 3 * MIB
    torch.cuda.caching_allocator_delete(address)
    assert allocated() == before


@row("caching_allocator_delete")
def _() -> None:
    first = torch.cuda.caching_allocator_alloc(5 * MIB)
    torch.cuda.caching_allocator_delete(first)
    second = torch.cuda.caching_allocator_alloc(5 * MIB)
    torch.cuda.caching_allocator_delete(second)
    assert first == second, "freed memory is used again"


@row("caching_allocator_enable")
def _() -> None:
    torch.cuda.caching_allocator_enable(False)


@row("caching_allocator_disabled")
def _() -> None:
    with torch.cuda.memory.caching_allocator_disabled():
        pass


@row("set_per_process_memory_fraction")
def _() -> None:
    torch.cuda.empty_cache()
    _free, total = torch.cuda.mem_get_info()
    torch.cuda.set_per_process_memory_fraction(0.01)
    try:
        assert "capped" in refusal_of(total // 50)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    tensor(total // 50)


@row("get_per_process_memory_fraction")
def _() -> None:
    torch.cuda.set_per_process_memory_fraction(0.25)
    assert torch.cuda.get_per_process_memory_fraction() == 0.25
    torch.cuda.set_per_process_memory_fraction(1.0)
    assert torch.cuda.get_per_process_memory_fraction() == 1.0


@row("empty_cache")
def _() -> None:
    block = tensor(64 * MIB)
    del block
    free = torch.cuda.mem_get_info()[0]
    reserved = torch.cuda.memory_reserved()
    torch.cuda.empty_cache()
    given = reserved - torch.cuda.memory_reserved()
    assert given >= 64 * MIB
    assert torch.cuda.mem_get_info()[0] - free == given, "what is given back is free on the card"


@row("memory_stats")
def _() -> None:
    before = torch.cuda.memory_stats()
    block = tensor(3 * MIB + 5)
    after = torch.cuda.memory_stats()
    for key, more in {
        "allocation.all.current": 1,
        "allocation.large_pool.allocated": 1,
        "allocated_bytes.all.current": 3 * MIB + 512,
        "requested_bytes.all.current": 3 * MIB + 5,
        "active_bytes.large_pool.current": 3 * MIB + 512,
        "num_ooms": 0,
    }.items():
        assert after[key] - before[key] == more, key
    del block
    assert torch.cuda.memory_stats()["allocation.all.freed"] == after["allocation.all.freed"] + 1


@row("memory_stats_as_nested_dict")
def _() -> None:
    nested = torch.cuda.memory_stats_as_nested_dict()
    assert nested["allocated_bytes"]["all"]["current"] == allocated()


@row("reset_accumulated_memory_stats")
def _() -> None:
    tensor(MIB)
    torch.cuda.reset_accumulated_memory_stats()
    stats = torch.cuda.memory_stats()
    assert stats["allocation.all.allocated"] == 0
    assert stats["num_alloc_retries"] == 0
    assert stats["allocated_bytes.all.current"] == allocated()


@row("reset_peak_memory_stats")
def _() -> None:
    block = tensor(32 * MIB)
    del block
    assert torch.cuda.max_memory_allocated() >= allocated() + 32 * MIB
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == allocated()


@row("reset_max_memory_allocated")
def _() -> None:
    tensor(8 * MIB)
    torch.cuda.reset_max_memory_allocated()
    assert torch.cuda.max_memory_allocated() == allocated()


@row("reset_max_memory_cached")
def _() -> None:
    tensor(8 * MIB)
    torch.cuda.reset_max_memory_cached()
    assert torch.cuda.max_memory_reserved() == torch.cuda.memory_reserved()


@row("host_memory_stats")
def _() -> None:
    before = torch.cuda.host_memory_stats()["allocations.allocated"]
    pinned = torch.empty(MIB, dtype=torch.uint8, pin_memory=True)
    assert torch.cuda.host_memory_stats()["allocations.allocated"] > before
    del pinned


@row("host_memory_stats_as_nested_dict")
def _() -> None:
    assert "allocations" in torch.cuda.host_memory_stats_as_nested_dict()


@row("reset_accumulated_host_memory_stats")
def _() -> None:
    torch.cuda.reset_accumulated_host_memory_stats()
    assert torch.cuda.host_memory_stats()["allocations.allocated"] == 0


@row("reset_peak_host_memory_stats")
def _() -> None:
    torch.cuda.reset_peak_host_memory_stats()


@row("memory_allocated")
def _() -> None:
    before = allocated()
    blocks = [tensor(700) for _ in range(10)]
    assert allocated() - before == 10 * 1024
    del blocks
    assert allocated() == before


@row("max_memory_allocated")
def _() -> None:
    torch.cuda.reset_peak_memory_stats()
    before = allocated()
    block = tensor(16 * MIB)
    del block
    assert torch.cuda.max_memory_allocated() == before + 16 * MIB


@row("memory_reserved")
def _() -> None:
    torch.cuda.empty_cache()
    free, before = torch.cuda.mem_get_info()[0], torch.cuda.memory_reserved()
    block = tensor(100 * MIB)
    grown = torch.cuda.memory_reserved() - before
    assert grown > 0
    assert free - torch.cuda.mem_get_info()[0] == grown, "what is reserved is what the card has less"
    del block


@row("max_memory_reserved")
def _() -> None:
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_reserved()
    block = tensor(100 * MIB)
    del block
    torch.cuda.empty_cache()
    assert torch.cuda.max_memory_reserved() > before >= torch.cuda.memory_reserved()


@row("memory_cached")
def _() -> None:
    assert torch.cuda.memory_cached() == torch.cuda.memory_reserved()


@row("max_memory_cached")
def _() -> None:
    assert torch.cuda.max_memory_cached() == torch.cuda.max_memory_reserved()


@row("memory_snapshot")
def _() -> None:
    block = tensor(4 * MIB)
    segments = torch.cuda.memory_snapshot()
    assert sum(segment["total_size"] for segment in segments) == torch.cuda.memory_reserved()
    assert sum(segment["allocated_size"] for segment in segments) == allocated()
    assert block.data_ptr() in {at["address"] for segment in segments for at in segment["blocks"]}


@row("memory_summary")
def _() -> None:
    assert "PyTorch CUDA memory summary" in torch.cuda.memory_summary()


@row("list_gpu_processes")
def _() -> None:
    assert isinstance(torch.cuda.list_gpu_processes(), str)


@row("mem_get_info")
def _() -> None:
    free, total = torch.cuda.mem_get_info()
    assert 0 < free < total


@row("get_allocator_backend")
def _() -> None:
    assert torch.cuda.memory.get_allocator_backend() == "movie"


@row("CUDAPluggableAllocator")
def _() -> None:
    other = torch._C._cuda_customAllocator(1, 1)
    assert other is not None, "others can be made; they cannot take MOVie's place"


@row("change_current_allocator")
def _() -> None:
    torch.cuda.memory.change_current_allocator(torch.cuda.memory._CUDAAllocator(torch._C._cuda_customAllocator(1, 1)))


@row("MemPool")
def _() -> None:
    pool = torch.cuda.MemPool()
    assert pool.use_count() == 1
    assert pool.snapshot() == []


@row("use_mem_pool")
def _() -> None:
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        inside = tensor(6 * MIB)
    outside = tensor(6 * MIB)
    addresses = {at["address"] for segment in pool.snapshot() for at in segment["blocks"]}
    assert inside.data_ptr() in addresses
    assert outside.data_ptr() not in addresses
    del inside
    with torch.cuda.use_mem_pool(pool):
        again = tensor(6 * MIB)
    assert again.data_ptr() in addresses, "a pool's memory is used again in it"
    del again, pool
    gc.collect()
    assert all(segment["segment_pool_id"] == (0, 0) for segment in torch.cuda.memory_snapshot())


@row("_record_memory_history")
def _() -> None:
    torch.cuda.memory._record_memory_history(max_entries=1000)

    def somewhere() -> torch.Tensor:
        return tensor(3 * MIB)

    block = somewhere()
    address = block.data_ptr()
    del block
    snapshot = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    events = [event for event in snapshot["device_traces"][0] if event.get("addr") == address]
    assert [event["action"] for event in events if "segment" not in event["action"]] == [
        "alloc",
        "free_requested",
        "free_completed",
    ]
    names = [frame["name"].rpartition(".")[2] for frame in events[-3]["frames"]]
    assert names[:2] == ["tensor", "somewhere"], names
    assert torch.cuda.memory._snapshot()["device_traces"][0] == []


@row("_snapshot")
def _() -> None:
    snapshot = torch.cuda.memory._snapshot()
    assert {"segments", "device_traces", "allocator_settings", "external_annotations"} <= set(snapshot)
    assert len(snapshot["device_traces"]) == torch.cuda.device_count()


@row("_dump_snapshot")
def _() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.pickle"
        torch.cuda.memory._dump_snapshot(str(path))
        assert path.stat().st_size > 100


@row("_set_memory_metadata")
def _() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.cuda.memory._set_memory_metadata("epoch 1")
    assert torch.cuda.memory._get_memory_metadata() == "", "not recorded, and it says so"


# --- around it -------------------------------------------------------------------------------------------------------


@row("torch.OutOfMemoryError")
def _() -> None:
    block = tensor(8 * MIB)
    assert "Tried to allocate" in refusal_of(1 << 45)
    assert torch.cuda.memory_stats()["num_ooms"] > 0
    tensor(8 * MIB)
    del block


@row("out-of-memory observers")
def _() -> None:
    seen: list[tuple[int, ...]] = []
    torch._C._cuda_attach_out_of_memory_observer(lambda *what: seen.append(what))
    refusal_of(1 << 45)
    assert len(seen) == 1
    assert seen[0][:2] == (0, 1 << 45)


@row("Tensor.record_stream")
def _() -> None:
    side = torch.cuda.Stream()
    block = tensor(4 * MIB)
    address = block.data_ptr()
    with torch.cuda.stream(side):
        for _ in range(10):
            block.add_(1)
    block.record_stream(side)
    del block
    torch.cuda.synchronize()
    again = tensor(4 * MIB)
    assert again.data_ptr() == address


@row("tensors without elements")
def _() -> None:
    before = allocated()
    assert torch.empty(0, device="cuda").data_ptr() == 0
    assert allocated() == before


@row("UntypedStorage.resize_")
def _() -> None:
    block = tensor(4 * MIB)
    before = allocated()
    block.untyped_storage().resize_(0)
    assert allocated() == before - 4 * MIB
    block.untyped_storage().resize_(4 * MIB)
    assert allocated() == before


@row("torch.cuda.graph")
def _() -> None:
    static = torch.zeros(MIB, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        doubled = static * 2
        result = doubled + 1
    pools = {segment["segment_pool_id"] for segment in torch.cuda.memory_snapshot()}
    assert any(pool != (0, 0) for pool in pools), "a graph's memory is apart"
    kept = result.data_ptr()
    del doubled
    eager = [tensor(4 * MIB) for _ in range(20)]
    torch.cuda.empty_cache()
    graph.replay()
    assert kept not in {block.data_ptr() for block in eager}
    del result, graph
    gc.collect()


@row("torch.cuda.make_graphed_callables")
def _() -> None:
    module = torch.nn.Linear(64, 64).cuda()
    graphed = torch.cuda.make_graphed_callables(module, (torch.randn(8, 64, device="cuda", requires_grad=True),))
    graphed(torch.randn(8, 64, device="cuda", requires_grad=True)).sum().backward()


@row("torch.compile")
def _() -> None:
    module = torch.compile(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()).cuda())
    for _ in range(2):
        module(torch.randn(8, 64, device="cuda")).sum().backward()


@row('torch.compile(mode="reduce-overhead")')
def _() -> None:
    module = torch.compile(torch.nn.Linear(32, 32).cuda(), mode="reduce-overhead")
    for _ in range(4):
        module.zero_grad()  # PyTorch refuses to add to gradients that lie in a tree of graphs
        module(torch.randn(8, 32, device="cuda")).sum().backward()


@row('trees of graphs of torch.compile(mode="reduce-overhead")')
def _() -> None:
    weight = torch.randn(512, 512, device="cuda")
    data = torch.randn(2048, 512, device="cuda")
    trunk = torch.compile(lambda x: torch.relu(x * 2) @ weight, mode="reduce-overhead")
    left = torch.compile(lambda x: (x + 1) @ weight, mode="reduce-overhead")
    right = torch.compile(lambda x: (x @ weight).sum(1), mode="reduce-overhead")
    # PyTorch compares what lives in the pool with what it holds, at each recording and each run.
    asserts = {"triton.slow_path_cudagraph_asserts": True, "triton.fast_path_cudagraph_asserts": True}
    with torch.no_grad(), torch._inductor.config.patch(asserts):
        for step in range(12):
            torch.compiler.cudagraph_mark_step_begin()
            middle = trunk(data)
            end = (left, right)[step // 2 % 2](middle)
            assert middle.data_ptr() != end.data_ptr(), "what lives is not used again"
    manager = cudagraph_trees.get_container(0).tree_manager
    assert manager is not None, "plain graphs, no trees"
    assert manager.debug_checkpointing_counter > 0, "a branch begins where the trunk ended"


@row("torch.backends.cudnn.benchmark")
def _() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.backends.cudnn.benchmark = True
    try:
        torch.nn.Conv2d(3, 8, 3).cuda()(torch.randn(1, 3, 16, 16, device="cuda"))
    finally:
        torch.backends.cudnn.benchmark = False


@row("torch.profiler(profile_memory=True)")
def _() -> None:
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        block = tensor(4 * MIB)
        del block
    usage = [event.device_memory_usage for event in profiled.key_averages()]
    assert {4 * MIB, -4 * MIB} <= set(usage), usage


@row("torch.accelerator.memory")
def _() -> None:
    block = tensor(8 * MIB)
    memory = torch.accelerator.memory
    assert memory.memory_allocated() == allocated()
    assert memory.memory_reserved() == torch.cuda.memory_reserved()
    memory.reset_peak_memory_stats()
    assert memory.max_memory_allocated() == allocated()
    del block
    memory.empty_cache()
    assert memory.memory_reserved() == torch.cuda.memory_reserved()


@row("sending CUDA tensors to other processes")
def _() -> None:
    ForkingPickler(io.BytesIO()).dump(tensor(MIB))


def nccl_group() -> None:
    if not dist.is_initialized():
        dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)


@row("NCCL collectives")
def _() -> None:
    nccl_group()
    dist.all_reduce(tensor(MIB))
    torch.cuda.synchronize()


@row("ProcessGroupNCCL.register_mem_pool")
def _() -> None:
    nccl_group()
    backend = dist.group.WORLD._get_backend(torch.device("cuda"))
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        block = tensor(4 * MIB)
    dist.all_reduce(tensor(MIB))
    backend.register_mem_pool(pool)
    backend.deregister_mem_pool(pool)
    del block


@row("DataLoader workers and pinned memory")
def _() -> None:
    data = torch.utils.data.TensorDataset(torch.arange(32))
    loader = torch.utils.data.DataLoader(data, batch_size=8, num_workers=2, pin_memory=True)
    assert sum(batch[0].to("cuda").numel() for batch in loader) == 32


@row("copies between cards")
def _() -> None:
    here, there = tensor(4 * MIB, "cuda:0"), tensor(4 * MIB, "cuda:1")
    there.copy_(here)
    assert here.to("cuda:1").device.index == 1
    torch.cuda.synchronize()


def main() -> None:
    wanted = sys.argv[1:] or list(_rows)
    torch.cuda.init()
    outcomes: dict[str, Any] = {}
    for name in wanted:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            try:
                _rows[name]()
                outcomes[name] = "works"
            except AssertionError as error:
                outcomes[name] = f"wrong: {error!r}"
            except Exception as error:
                outcomes[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        gc.collect()
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main()
