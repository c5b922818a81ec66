"""Traces from the dict of a snapshot."""

from dataclasses import replace
from typing import Any

import numpy as np

from movie.sizes import format_size
from movie.trace.errors import TraceError
from movie.trace.model import LARGEST, Action, Int64, Segments, Trace, with_block_values
from movie.trace.snapshot.calls import empty_cache_calls, order_of_work, phase_marks
from movie.trace.snapshot.events import Events, read_events
from movie.trace.snapshot.lives import Lives, find_lives
from movie.trace.snapshot.pools import fill_pools, noted_segments
from movie.trace.snapshot.rewind import Rewound, rewind_segments
from movie.trace.snapshot.state import MOST_DEVICES, DeviceState, PoolNumbers, Segment, read_state
from movie.trace.snapshot.values import Place, describe

_MOST_SETTINGS = 256


def read_snapshot(snapshot: Any, path: str, form: str) -> list[Trace]:
    """The traces of a snapshot, one for each device that has events or segments, by device.

    The snapshot's event lists are emptied on the way. `form` names the container, for `Trace.format`. What the model
    adds to the recorded events: rows where `empty_cache` was called (see `calls.empty_cache_calls`), `mark` rows where
    annotated phases begin, and the free_requested or free_completed rows that a recording left out (with a warning).
    `time_us` of these is that of the event they come before.

    Raises TraceError, with the place, for what is no snapshot or holds wrong values.
    """
    if type(snapshot) is not dict:
        raise TraceError(path, "", f"is {describe(snapshot)}, not a memory snapshot (a dict with 'segments')")
    top = Place(path, "", snapshot)
    for key, hint in (("segments", ""), ("device_traces", ": history was not recorded, or it is no memory snapshot")):
        if key not in snapshot:
            raise TraceError(path, "", f"has no '{key}'{hint}")
    pools = PoolNumbers()
    states = read_state(top.field("segments"), pools)
    lists = top.field("device_traces")
    if len(lists.as_list()) > MOST_DEVICES:
        raise lists.error(f"has more than {MOST_DEVICES} lists of events")
    settings = _plain_settings(top.optional("allocator_settings"))
    used = sorted({*states, *(index for index, events in enumerate(lists.as_list()) if events != [])})
    if not used:
        raise TraceError(path, "", "holds no events and no segments: nothing was recorded")
    if len({id(events) for events in lists.value}) < len(lists.value):
        raise lists.error("holds one list twice")
    traces = []
    for device in used:
        state = states.get(device, DeviceState())
        has_list = device < len(lists.value)
        place = lists.item(device) if has_list else Place(path, f"device_traces[{device}]", [])
        warnings = [] if has_list else [f"device {device} has segments but no list of events"]
        traces.append(
            _device_trace(device, top=top, place=place, state=state, pools=pools, settings=settings, warnings=warnings)
        )
    # Pools are numbered over the whole file, so the names are complete only now.
    return [replace(trace, pools=pools.names, path=path, format=form, devices=len(used)) for trace in traces]


def _plain_settings(place: Place | None) -> dict[str, Any]:
    """The allocator settings, as far as they are scalars or dicts of scalars."""
    if place is None:
        return {}
    scalars = (bool, int, float, str)

    def scalar(value: Any) -> bool:
        return type(value) in scalars and (type(value) is not int or abs(value) <= LARGEST)

    settings: dict[str, Any] = {}
    for key, value in list(place.as_dict().items())[:_MOST_SETTINGS]:
        if scalar(value):
            settings[key] = value
        elif type(value) is dict and len(value) <= _MOST_SETTINGS:
            settings[key] = {name: inner for name, inner in value.items() if scalar(inner)}
    return settings


def _device_trace(
    device: int,
    *,
    top: Place,
    place: Place,
    state: DeviceState,
    pools: PoolNumbers,
    settings: dict[str, Any],
    warnings: list[str],
) -> Trace:
    if len(place.as_list()) == 1:
        warnings.append(f"{place.where} holds one lone event: history was not recorded, only the segments are used")
        place = Place(place.path, place.where, [])
    events = read_events(place, pools, warnings)
    rewound = rewind_segments(events, state.segments)
    lives = find_lives(events, blocks=state.blocks, segments=rewound.segments, settings=settings, place=place)
    fill_pools(events, rewound, state.segments, noted_segments(top.optional("private_segments"), pools, device))
    annotations = top.optional("external_annotations")
    calls = empty_cache_calls(events, rewound, settings, top.optional("empty_cache_calls"), annotations)
    marks, phases, names, times = phase_marks(events, annotations, device)

    rows = _Rows(events)
    rows.insert(Action.FREE_COMPLETED, np.flatnonzero(lives.completions_missing), after=True, ids=lives.ids)
    rows.insert(Action.MARK, marks, phases=phases, times=times)
    work = order_of_work(events, lives.ids, top.optional("order_of_work"), device)
    if work is not None:
        rows.insert(Action.USE, work.use_at, blocks=work.use_id, streams=work.use_stream)
        rows.insert(Action.SEEN, work.seen_at, streams=work.seen_stream, sizes=work.seen_number)
    # What is noted at the same place was mostly seen by this call, which looks before it gives back.
    rows.insert(Action.EMPTY_CACHE, calls)
    rows.insert(Action.FREE_REQUESTED, np.flatnonzero(lives.requests_missing), ids=lives.ids)
    rows.keep(np.flatnonzero(~lives.dropped), lives.ids)

    end_reserved = sum(segment.size for segment in state.segments)
    _tell(warnings, place.where, lives, rewound)
    held = len(lives.start) > 0 or len(rewound.segments) > 0
    damaged = bool(lives.dropped.any()) or lives.mismatches > 0 or rewound.mismatches > 0
    trace = Trace(
        **rows.columns(),
        start=lives.start,
        segments=_segment_table(rewound.segments),
        start_reserved=rewound.reserved,
        end_reserved=min(end_reserved, LARGEST),
        phases=names,
        device=device,
        settings=settings,
        completions_recorded=work is None,
        complete=not held and not damaged,
        warnings=tuple(warnings),
    )
    return with_block_values(trace)


def _tell(warnings: list[str], where: str, lives: Lives, rewound: Rewound) -> None:
    if len(lives.start) or rewound.segments:
        warnings.append(
            f"{where} has lost its head, or begins in the middle of a run: {len(lives.start)} blocks were alive and "
            f"{format_size(rewound.reserved)} reserved before its first event (rebuilt from the final segments)"
        )
    for count, what in (
        (int(lives.dropped.sum()), "events free blocks that neither the events nor the segments know: left out"),
        (lives.mismatches, "blocks of the final segments do not fit the events: recording stopped early?"),
        (rewound.mismatches, "changes of segments do not fit the final segments"),
        (int(lives.requests_missing.sum()), "free_completed events have no free_requested: taken as both"),
        (int(lives.completions_missing.sum()), "free_requested events have no free_completed: taken as both"),
    ):
        if count:
            warnings.append(f"{where}: {count} {what}")


def _segment_table(segments: list[Segment]) -> Segments:
    columns = list(zip(*segments, strict=True)) or [()] * len(Segment._fields)
    table = dict(zip(Segment._fields, columns, strict=True))
    return Segments(
        address=np.array(table["address"], dtype=np.uint64),
        size=np.array(table["size"], dtype=np.int64),
        stream=np.array(table["stream"], dtype=np.int64),
        pool=np.array(table["pool"], dtype=np.int64),
        small=np.array(table["small"], dtype=np.bool_),
        expandable=np.array(table["expandable"], dtype=np.bool_),
    )


class _Rows:
    """Rows of a trace: events, and rows put in between them. What goes to one place keeps the order of the calls."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._parts: list[dict[str, Any]] = []

    def _add(self, source: Int64, **columns: Any) -> None:
        part = {
            "source": source,
            "id": -1,
            "phase": -1,
            "stream": self._at(self._events.stream, source),
            "bytes": 0,
            "time_us": self._at(self._events.time_us, source),
            **columns,
        }
        self._parts.append({name: np.broadcast_to(column, source.shape) for name, column in part.items()})

    @staticmethod
    def _at(column: Any, source: Int64) -> Any:
        """Values of the events; of the last one for a place after the end."""
        return column[np.minimum(source, len(column) - 1)] if len(column) else np.zeros(len(source), column.dtype)

    def insert(
        self,
        action: Action,
        at: Int64,
        *,
        after: bool = False,
        ids: Int64 | None = None,
        phases: Int64 | int = -1,
        times: Int64 | None = None,
        blocks: Int64 | None = None,
        streams: Int64 | None = None,
        sizes: Int64 | None = None,
    ) -> None:
        """Rows before (or directly after) events. With `ids` they are of the events' blocks."""
        given = {"time_us": times, "stream": streams, "bytes": sizes}
        extra = {name: column for name, column in given.items() if column is not None}
        block = blocks if blocks is not None else -1 if ids is None else ids[at]
        self._add(at, key=2 * at + (2 if after else 0), action=int(action), id=block, phase=phases, **extra)

    def keep(self, events: Int64, ids: Int64) -> None:
        """The events themselves."""
        self._add(events, key=2 * events + 1, action=self._events.action[events], id=ids[events])

    def columns(self) -> dict[str, Any]:
        part = {name: np.concatenate([p[name] for p in self._parts]) for name in self._parts[0]}
        order = np.argsort(part["key"], kind="stable")
        row = {name: column[order] for name, column in part.items()}
        action = row["action"].astype(np.uint8)
        recorded = ~np.isin(action, (Action.MARK, Action.EMPTY_CACHE, Action.USE, Action.SEEN))
        streams = ~np.isin(action, (Action.MARK, Action.EMPTY_CACHE))

        def of_event(column: Int64) -> Int64:
            return np.where(recorded, self._at(column, row["source"]), 0)

        return {
            "action": action,
            "id": row["id"].astype(np.int64),
            "bytes": np.where(action == Action.SEEN, row["bytes"], of_event(self._events.bytes)).astype(np.int64),
            "stream": np.where(streams, row["stream"], 0).astype(np.int64),
            "pool": of_event(self._events.pool),
            "address": of_event(self._events.address).astype(np.uint64),
            "time_us": row["time_us"].astype(np.int64),
            "phase": row["phase"].astype(np.int32),
        }
