"""Small logs of allocations for tests, one a format, as their programs would write them."""

import json
import lzma

import numpy as np

BASE = 0x7F5C00000000


def memory(addr, size, total, *, ts, device=0, kind=1, **more):
    """An event of torch.profiler: `size` bytes allocated, or freed where it is negative."""
    return {
        "ph": "i",
        "name": "[memory]",
        "ts": ts,
        "args": {
            "Device Type": kind,
            "Device Id": device,
            "Addr": addr,
            "Bytes": size,
            "Total Allocated": total,
            "Total Reserved": 1 << 30,
            **more,
        },
    }


def profile(*events):
    return {"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "aten::mm", "ts": 0, "dur": 1}, *events]}


def _runs():
    """Eight blocks, each freed after the next has come: (alloc or free, address, size, stream)."""
    for i in range(8):
        yield 1, BASE + 4096 * i, 512 * (i + 1), 32 * (i % 2)
        if i:
            yield 0, BASE + 4096 * (i - 1), 512 * i, 32 * ((i - 1) % 2)


def _stalloc():
    lines = ["Iteration Index : 0", "micro-batch : F", "decoder.layers.0.mlp->MoELayer Layer : F-start"]
    lines += [f"{op} {address:#x} {size} {hex(stream) if stream else 0}" for op, address, size, stream in _runs()]
    return "\n".join([*lines, "Iteration Index : end", ""]).encode()


def _rmm():
    lines = ["Thread,Time,Action,Pointer,Size,Stream"]
    for i, (op, address, size, stream) in enumerate(_runs()):
        action = "allocate" if op else "free"
        lines.append(f"7,10:15:07.{i:06},{action},{address:#x},{size},{hex(stream) if stream else 0}")
    lines.append("7,10:15:08.000000,allocate failure,(nil),42949672960,0x2")
    return "\n".join([*lines, ""]).encode()


def _kineto():
    events, total = [], 1 << 20
    for i, (op, address, size, _) in enumerate(_runs()):
        change = size if op else -size
        total += change
        events.append(memory(address, change, total, ts=100 + i))
    return json.dumps(profile(*events)).encode()


def rows():
    return np.array([(op, address, size, stream) for op, address, size, stream in _runs()], dtype="<i8").tobytes()


LOGS = {
    "stalloc": _stalloc,
    "rmm": _rmm,
    "kineto": _kineto,
    "lifetimes": lambda: b"# a comment\nstart end size\n0 3 512\n1 4 4096\n3, 9, 100\n4\t9\t1\n",
    "rows": rows,
    "rows.xz": lambda: lzma.compress(rows()),
}
