"""The counters of torch.cuda.memory_stats(), from MOVie."""

from typing import Any

from movie import _core


def nested_statistics(device: int) -> dict[str, Any]:
    """As `torch._C._cuda_memoryStats` gives them: `allocated_bytes.all.current` is at
    ["allocated_bytes"]["all"]["current"]. All zeros where nothing was allocated yet."""
    nested: dict[str, Any] = {"num_oom_rejections": 0, "reserved_bytes_by_private_pools": {}}
    for path, value in _core.torch.statistics(device).items():
        *above, last = path.split(".")
        inside = nested
        for name in above:
            inside = inside.setdefault(name, {})
        inside[last] = value
    return nested


def device_statistics(device: int) -> dict[str, Any]:
    """As `torch._C._accelerator_getDeviceStats` gives them: what all kinds of accelerators count."""
    nested = nested_statistics(device)
    del nested["num_oom_rejections"], nested["reserved_bytes_by_private_pools"]
    return nested
