"""Chrome traces of torch.profiler, recorded with `profile_memory=True`: the events named `[memory]`.

Of each GPU its events, ordered by time. Each tells an address, the bytes that were allocated there (negative: freed),
and the bytes allocated in all, which must be the running sum: where it is not, events are missing, and a warning says
so. Sizes are those of PyTorch's blocks, already rounded. What was alive before the first event is known as a sum only;
blocks of it that are freed later are known by their frees, and the rest becomes one block. There are no streams.
"""

import re
from typing import Any

import numpy as np

from movie.sizes import format_size
from movie.trace.format import Format
from movie.trace.log import Log, trace_of
from movie.trace.model import LARGEST, Action, StartBlocks, Trace
from movie.trace.plain_data import load_json
from movie.trace.source import Source

# One of what such a file begins with; its events may come after long lists of other things.
_KEYS = re.compile(rb'"(traceEvents|schemaVersion|deviceProperties|displayTimeUnit|distributedInfo|traceName)"\s*:')
_PHASE = re.compile(rb'"ph"\s*:')
_NAME = "[memory]"
_CUDA = 1  # the device type of CUDA and ROCm; 0 is the CPU
_INT64 = 2**63

# Place in the file, time, order of events of one time, address, bytes, allocated and reserved in all.
_Event = tuple[int, float, int, int, int, int, int]


def _recognises(head: bytes) -> bool:
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return (start == b"{" and _KEYS.search(head) is not None) or (start == b"[" and _PHASE.search(head) is not None)


def _number(source: Source, where: str, holder: dict[Any, Any], key: str, low: int, high: int) -> int:
    value = holder.get(key)
    if type(value) is not int or not low <= value <= high:
        raise source.error(f"{where}.{key}", f"is not an integer from {low} to {high}")
    return value


def _events(source: Source, value: Any) -> dict[int, list[_Event]]:
    """The memory events of each GPU, in the order of the file."""
    events = value.get("traceEvents") if type(value) is dict else value
    if type(events) is not list:
        raise source.error("traceEvents", "is not a list")
    found: dict[int, list[_Event]] = {}
    for index, event in enumerate(events):
        if type(event) is not dict or event.get("name") != _NAME:
            continue
        where = f"traceEvents[{index}]"
        arguments = event.get("args")
        if type(arguments) is not dict:
            raise source.error(f"{where}.args", "is not an object")
        if arguments.get("Device Type") != _CUDA:
            continue
        time = event.get("ts")
        if isinstance(time, bool) or not isinstance(time, int | float) or not 0 <= time < _INT64:
            raise source.error(f"{where}.ts", "is not a time")
        where += ".args"
        device = _number(source, where, arguments, "Device Id", 0, 1 << 16)
        found.setdefault(device, []).append(
            (
                index,
                time,
                _number(source, where, arguments, "Ev Idx", -1, _INT64 - 1) if "Ev Idx" in arguments else index,
                _number(source, where, arguments, "Addr", -_INT64, 2 * _INT64 - 1) % (2 * _INT64),
                _number(source, where, arguments, "Bytes", -LARGEST, LARGEST),
                _number(source, where, arguments, "Total Allocated", -LARGEST, LARGEST),
                _number(source, where, arguments, "Total Reserved", 0, LARGEST),
            )
        )
    if not found:
        raise source.error(
            "", f"has no {_NAME} events of a GPU: record with torch.profiler.profile(profile_memory=True)"
        )
    return found


def _read(source: Source) -> list[Trace]:
    by_device = _events(source, load_json(source, source.data))
    return [_device(source, device, events, len(by_device)) for device, events in sorted(by_device.items())]


def _device(source: Source, device: int, events: list[_Event], devices: int) -> Trace:
    events = sorted(events, key=lambda event: event[1:3])
    columns = list(zip(*events, strict=True))
    places = columns[0]
    change, allocated = (np.array(columns[i], dtype=np.int64) for i in (4, 5))
    address = np.array(columns[3], dtype=np.uint64)
    moves = change != 0
    log = Log(
        action=np.where(change > 0, Action.ALLOC, Action.FREE_REQUESTED).astype(np.uint8)[moves],
        key=address[moves],
        bytes=np.abs(change)[moves],
        stream=np.zeros(int(moves.sum()), dtype=np.int64),
        address=address[moves],
        time_us=np.array(columns[1]).astype(np.int64)[moves],
        phase=np.full(int(moves.sum()), -1, dtype=np.int32),
    )
    warnings = []
    before = events[0][5] - events[0][4]
    if not -LARGEST <= before <= LARGEST:
        raise source.error(f"traceEvents[{places[0]}].args", "tells of more than 2**62 bytes before it")
    with np.errstate(over="ignore"):
        wrong = before + np.cumsum(change) != allocated
    if wrong.any():
        first = places[int(np.argmax(wrong))]
        warnings.append(
            f"'Total Allocated' is not the running sum after {int(wrong.sum()):,} of {len(events):,} events, first at "
            f"traceEvents[{first}]: events are missing"
        )
    kept = [place for place, moved in zip(places, moves.tolist(), strict=True) if moved]

    def trace(start: StartBlocks) -> Trace:
        return trace_of(
            source,
            log,
            lambda entry: f"traceEvents[{kept[entry]}]",
            start=start,
            keep_unknown=True,
            format="Kineto trace",
            device=device,
            devices=devices,
            start_reserved=columns[6][0],
            end_reserved=columns[6][-1],
            warnings=tuple(warnings),
            complete=not wrong.any(),
        )

    known = sum(trace(StartBlocks()).start.bytes.tolist())
    if before < known:
        warnings.append(
            f"{format_size(known)} are freed that were alive before the first event, where {format_size(before)} were"
        )
    elif before > known:
        warnings.append(
            f"{format_size(before)} were alive before the first event; {format_size(before - known)} of them are never "
            "freed and taken for one block"
        )
    return trace(_lump(before - known) if before > known else StartBlocks())


def _lump(size: int) -> StartBlocks:
    """Blocks of which nothing is known but their sum, as one."""
    none = np.zeros(1, dtype=np.int64)
    return StartBlocks(
        bytes=none + size,
        size=none + size,
        address=none.astype(np.uint64),
        stream=none,
        pool=none,
        pending=np.zeros(1, dtype=np.bool_),
    )


FORMAT = Format("Chrome trace of torch.profiler", _recognises, _read)
