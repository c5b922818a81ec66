"""What the driver's calls cost, whether they wait for kernels, and what memory put together of pages is worth."""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from raw_memory import MIB, PAGE, Mapped, handles, release

from movie import _core
from movie._core import CudaDevice

REPEATS = 5
SIZES = (2, 8, 32, 128, 512)  # MiB of a handle
TOTAL = 512 * MIB
VIEWS = (0, 250, 1000)


def microseconds(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return 1e6 * (time.perf_counter() - begin)


def by_handle_size(device: CudaDevice) -> list[dict[str, float]]:
    """Microseconds a call, by the size of handles: access for each handle alone, and for a range of them at once."""
    rows = []
    for size in (mib * MIB for mib in SIZES):
        count = TOTAL // size
        times: dict[str, list[float]] = {}

        def note(name: str, call: Callable[[], Any], per: int = 1, times: dict[str, list[float]] = times) -> None:
            times.setdefault(name, []).append(microseconds(call) / per)

        for _ in range(REPEATS):
            pages: list[int] = []
            note(
                "create", lambda pages=pages, size=size, count=count: pages.extend(handles(device, count, size)), count
            )
            base = device.reserve(TOTAL)
            for index, page in enumerate(pages):
                note("map", lambda at=base + index * size, page=page, size=size: device.map(at, size, page))
            for index in range(count):
                note("set_access_single", lambda at=base + index * size, size=size: device.set_access(at, size))
            note("set_access_batched", lambda base=base: device.set_access(base, TOTAL))
            note("unmap_batched", lambda base=base: device.unmap(base, TOTAL))
            note("release", lambda pages=pages: release(device, pages), count)
            device.free_address(base, TOTAL)
        rows.append(
            {"handle_mib": size // MIB, "handles": count} | {name: median(all_) for name, all_ in times.items()}
        )
    return rows


def waiting(device: CudaDevice) -> dict[str, float]:
    """Milliseconds that calls take while a kernel of about 300 ms runs: as long as it where they wait for it."""
    cycles = 300 * 1_500_000  # of a clock of about 1.5 GHz
    pages = handles(device, 8)
    base = device.reserve(8 * PAGE)
    found = {}

    def during(name: str, call: Callable[[], Any]) -> None:
        torch.cuda.synchronize()
        torch.cuda._sleep(cycles)
        found[name] = microseconds(call) / 1e3
        found[f"{name}_kernel"] = found[name] + microseconds(torch.cuda.synchronize) / 1e3

    during("map", lambda: [device.map(base + i * PAGE, PAGE, page) for i, page in enumerate(pages)])
    during("set_access", lambda: device.set_access(base, 8 * PAGE))
    during("unmap", lambda: device.unmap(base, 8 * PAGE))
    during("release", lambda: release(device, pages))
    during("create", lambda: release(device, handles(device, 8)))
    device.free_address(base, 8 * PAGE)
    return found


def prefix_map(device: CudaDevice) -> str:
    """Whether a handle may be mapped in part."""
    page = device.create(2 * PAGE)
    base = device.reserve(2 * PAGE)
    try:
        device.map(base, PAGE, page)
        device.set_access(base, PAGE)
        device.unmap(base, PAGE)
    except (_core.DriverFailure, _core.RuleViolation) as error:
        return f"{error} ({device.last_problem()})"
    finally:
        device.release(page)
        device.free_address(base, 2 * PAGE)
    return "allowed"


def beside_many_views(device: CudaDevice) -> list[dict[str, float]]:
    """Microseconds for one more view of eight pages, by how many there are of the same pages."""
    pages = handles(device, 8)
    bases: list[int] = []
    rows = []

    def view() -> None:
        base = device.reserve(8 * PAGE)
        bases.append(base)
        for index, page in enumerate(pages):
            device.map(base + index * PAGE, PAGE, page)
        device.set_access(base, 8 * PAGE)

    for count in VIEWS:
        while len(bases) < count:
            view()
        rows.append({"views": count, "one_more": median(microseconds(view) for _ in range(REPEATS))})
    for base in bases:
        device.unmap(base, 8 * PAGE)
        device.free_address(base, 8 * PAGE)
    release(device, pages)
    return rows


def worth(device: CudaDevice) -> dict[str, Any]:
    """Copies and matrix products in memory put together of pages in a drawn order, against plain memory."""
    size = 256 * MIB
    pages = handles(device, 2 * size // PAGE)
    order = torch.randperm(len(pages), generator=torch.Generator().manual_seed(1)).tolist()
    stitched = Mapped(device, [pages[i] for i in order], PAGE)
    plain = torch.empty(2 * size, dtype=torch.uint8, device="cuda")
    found: dict[str, Any] = {}
    for name, memory in (("plain", plain), ("stitched", stitched.tensor())):
        memory.zero_()
        first, second = memory[:size], memory[size:]
        side = 4096
        a, b = (half.view(torch.bfloat16)[: side * side].view(side, side) for half in (first, second))
        found[name] = {
            "copy_gb_per_s": 2 * size / 1e9 / _seconds(lambda first=first, second=second: second.copy_(first)),
            "matmul_tflops": 2 * side**3 / 1e12 / _seconds(lambda a=a, b=b: torch.matmul(a, b)),
        }
    stitched.close()
    release(device, pages)
    return found


def _seconds(work: Callable[[], Any]) -> float:
    """Of one run on the card, the median of several."""
    found = []
    for _ in range(REPEATS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(10):
            work()
        end.record()
        end.synchronize()
        found.append(begin.elapsed_time(end) / 1e4)
    return max(median(found), 1e-9)


def main() -> dict[str, Any]:
    torch.cuda.init()
    device = CudaDevice(0)
    return {
        "granularity": device.granularity,
        "microseconds_by_handle_size": by_handle_size(device),
        "milliseconds_beside_a_kernel": waiting(device),
        "prefix_map": prefix_map(device),
        "beside_many_views": beside_many_views(device),
        "memory_put_together": worth(device),
    }
