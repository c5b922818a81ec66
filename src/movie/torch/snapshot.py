"""Snapshots of memory in PyTorch's format, so that PyTorch's own viewer and every tool around it read them.

A view shows bytes that have a home elsewhere. A snapshot has each physical byte once: while a block lives in a view,
its bytes are a segment at the view's address and are missing at their home addresses. The trace says the same: before
such an allocation its bytes are unmapped at home and mapped in the view, after the free they go back.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from movie import __version__, _core
from movie.torch.recording import recording

# An event as _core.torch.history() gives it.
_Event = tuple[str, int, int, int, tuple[int, int], int, int]
_Frames = list[dict[str, Any]]

_PLAIN = {"alloc", "free_requested", "free_completed", "segment_map", "segment_unmap"}
_ROUNDUP_CLASSES = [1 << power for power in range(16)]


class _FrameBook:
    """Frames of stacks; a stack that occurs often is one list, which pickles keep once."""

    def __init__(self) -> None:
        self._known: dict[int, _Frames] = {0: []}

    def __getitem__(self, stack: int) -> _Frames:
        frames = self._known.get(stack)
        if frames is None:
            frames = [
                {"filename": code.co_filename, "line": line, "name": getattr(code, "co_qualname", code.co_name)}
                for code, line in _core.torch.stack_frames(stack)
            ]
            self._known[stack] = frames
        return frames


def memory_snapshot(
    devices: int, pool: tuple[int, int] = (0, 0), include_traces: bool = True, settings: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A snapshot of `devices` devices, as `torch._C._cuda_memorySnapshot` gives it.

    `pool`: only the segments of this pool; (0, 0): all. `settings`: what is said about MOVie in `allocator_settings`.
    """
    book = _FrameBook()
    segments = [segment for device in range(devices) for segment in _segments(device, pool, book)]
    histories = [_core.torch.history(device) if include_traces else [] for device in range(devices)]
    traces = [list(_trace(events, recording.skip, book)) for events in histories]
    return {
        "segments": segments,
        "device_traces": traces,
        "allocator_settings": _settings() | (settings or {}),
        "external_annotations": [],
        "host_segments": [],
        "host_traces": [],
        # Of MOVie's own: pages move for other reasons too, so readers need not guess.
        "empty_cache_calls": [call for events in histories for call in _empty_cache_calls(events)],
        "order_of_work": [list(_order_of_work(events)) for events in histories],
    }


def _empty_cache_calls(events: Iterable[_Event]) -> Iterator[tuple[int, int]]:
    """The allocations and the frees before each call."""
    allocs = frees = 0
    for event in events:
        allocs += event[0] == "alloc"
        frees += event[0] == "free_requested"
        if event[0] == "empty_cache":
            yield allocs, frees


def _order_of_work(events: Iterable[_Event]) -> Iterator[tuple[int, int, str, int, int]]:
    """What MOVie was told and saw of the order of work: the allocations and the frees before it, "use" or "seen", which
    stream, and of uses the address of the block, else which event of the stream, from 1.
    """
    allocs = frees = 0
    for kind, address, size, stream, *_ in events:
        allocs += kind == "alloc"
        frees += kind == "free_requested"
        if kind in ("use", "seen"):
            yield allocs, frees, kind, stream, address if kind == "use" else size


def _segments(device: int, pool: tuple[int, int], book: _FrameBook) -> Iterator[dict[str, Any]]:
    for address, size, stream, pool_id, _is_view, laid in _core.torch.layout(device):
        if pool not in ((0, 0), pool_id):
            continue
        blocks = [
            {"address": at, "size": bytes_, "requested_size": requested, "state": state, "frames": book[stack]}
            for at, bytes_, requested, state, stack in laid
        ]
        live = [block for block in blocks if block["state"] == "active_allocated"]
        active = [block for block in blocks if block["state"] != "inactive"]
        yield {
            "device": device,
            "address": address,
            "total_size": size,
            "allocated_size": sum(block["size"] for block in live),
            "active_size": sum(block["size"] for block in active),
            "requested_size": sum(block["requested_size"] for block in live),
            "stream": stream,
            "segment_type": "large",  # pages of small blocks lie among the others
            "segment_pool_id": pool_id,
            "is_expandable": True,
            "frames": [],
            "blocks": blocks,
        }


def _trace(events: Iterable[_Event], skip: frozenset[str], book: _FrameBook) -> Iterator[dict[str, Any]]:
    def entry(action: str, event: _Event, address: int, size: int) -> dict[str, Any]:
        _, _, _, stream, pool, stack, time_us = event
        made = {
            "action": action,
            "device_free" if action == "oom" else "addr": address,
            "size": size,
            "stream": stream,
            "time_us": time_us,
            "compile_context": "N/A",
            "user_metadata": "",
            "pool_id": pool,
        }
        if stack:
            made["frames"] = book[stack]
        return made

    def translate() -> Iterator[dict[str, Any]]:
        lent = 0  # bytes that the next allocation has taken from home
        leaving: _Event | None = None  # the freed block whose bytes go home next
        home: list[_Event] = []
        for event in events:
            kind, address, size = event[:3]
            if kind == "give_home":
                home.append(event)
                continue
            yield from _go_home(leaving, home)
            home = []
            leaving = event if kind == "free_completed" else None
            if kind == "lend":
                lent += size
                yield entry("segment_unmap", event, address, size)
            elif kind in _PLAIN:
                if kind == "alloc" and lent:
                    yield entry("segment_map", event, address, lent)
                    lent = 0
                yield entry(kind, event, address, size)
            elif kind == "oom":
                yield entry("oom", event, address, size)
        yield from _go_home(leaving, home)

    def _go_home(leaving: _Event | None, home: list[_Event]) -> Iterator[dict[str, Any]]:
        if home and leaving is not None:
            yield entry("segment_unmap", leaving, leaving[1], sum(event[2] for event in home))
        for event in home:
            yield entry("segment_map", event, event[1], event[2])

    return (made for made in translate() if made["action"] not in skip)


def _settings() -> dict[str, Any]:
    """What viewers expect to find, with the values that are true of MOVie."""
    return {
        "PYTORCH_CUDA_ALLOC_CONF": "",
        "max_split_size": -1,
        "garbage_collection_threshold": 0.0,
        "expandable_segments": False,
        "roundup_power2_divisions": {str(size): 0 for size in _ROUNDUP_CLASSES},
        "allocator": f"movie {__version__}",
    }
