"""Small snapshots for tests, as torch would write them."""

import pickle
from pathlib import Path
from typing import Any

from movie.trace import Action, Trace, read_trace

MIB = 1 << 20


def event(action: str, addr: int, size: int, **more: Any) -> dict[str, Any]:
    return {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": 0, **more}


def alloc(addr: int, size: int, **more: Any) -> dict[str, Any]:
    return event("alloc", addr, size, **more)


def free(addr: int, size: int, **more: Any) -> list[dict[str, Any]]:
    return [event("free_requested", addr, size, **more), event("free_completed", addr, size, **more)]


def segment(address: int, total: int, blocks: list[tuple[int, int, int, str]], **more: Any) -> dict[str, Any]:
    """`blocks`: (offset, size, requested_size, state)."""
    return {
        "device": 0,
        "address": address,
        "total_size": total,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "blocks": [
            {"address": address + offset, "size": size, "requested_size": asked, "state": state}
            for offset, size, asked, state in blocks
        ],
        **more,
    }


def snapshot(events: list[Any], segments: list[Any], **more: Any) -> dict[str, Any]:
    return {"segments": segments, "device_traces": [events], **more}


def write(folder: Path, value: Any, name: str = "a.pickle") -> Path:
    path = folder / name
    path.write_bytes(pickle.dumps(value, 4))
    return path


def read(folder: Path, value: Any) -> Trace:
    [trace] = read_trace(write(folder, value))
    return trace


def names(trace: Trace) -> list[str]:
    """The rows in short, for comparisons: `alloc 0`, `free_requested 0`, `mark -1`."""
    return [f"{Action(a).name.lower()} {i}" for a, i in zip(trace.action.tolist(), trace.id.tolist(), strict=True)]
