"""The event list of one device as columns."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from movie.trace.errors import TraceError
from movie.trace.model import LARGEST, Action, Int64, UInt8
from movie.trace.snapshot.state import PoolNumbers
from movie.trace.snapshot.values import ADDRESSES, Place

UNKNOWN_POOL = -1
_CHUNK = 1 << 15
_SKIPPED = 255
_CODES = {
    action.name.lower(): int(action)
    for action in (
        Action.ALLOC,
        Action.FREE_REQUESTED,
        Action.FREE_COMPLETED,
        Action.SEGMENT_ALLOC,
        Action.SEGMENT_FREE,
        Action.SEGMENT_MAP,
        Action.SEGMENT_UNMAP,
        Action.SNAPSHOT,
        Action.OOM,
    )
}
_CODES["annotate"] = _SKIPPED  # torch 2.14 and later; says nothing about memory
_NO_ADDRESS = (Action.SNAPSHOT, Action.OOM)


@dataclass
class Events:
    """Columns of equal length; `row` is the position in the snapshot's list, `pool` a number or UNKNOWN_POOL."""

    action: UInt8
    address: Int64
    bytes: Int64
    stream: Int64
    time_us: Int64
    pool: Int64
    row: Int64

    def __len__(self) -> int:
        return len(self.action)


def read_events(place: Place, pools: PoolNumbers, warnings: list[str]) -> Events:
    """The columns of an event list, which is emptied on the way: the dicts are the largest part of a snapshot.

    Events of unknown kinds are left out, with a warning. Raises TraceError, with the place, for a missing or wrong
    value.
    """
    events = place.as_list()
    total = len(events)
    parts: list[Events] = []
    unknown: dict[str, int] = {}
    for low in range(0, total, _CHUNK):
        chunk = events[low : low + _CHUNK]
        events[low : low + _CHUNK] = [None] * len(chunk)
        parts.append(_Chunk(place, low, chunk).read(pools, unknown))
    for name, count in unknown.items():
        warnings.append(f"{place.where}: {count} events of the unknown kind '{name}' are left out")
    if not parts:
        return Events(np.zeros(0, np.uint8), *(np.zeros(0, np.int64) for _ in range(6)))
    columns = {name: np.concatenate([getattr(p, name) for p in parts]) for name in Events.__dataclass_fields__}
    kept = columns["action"] != _SKIPPED
    return Events(**{name: column[kept] for name, column in columns.items()})


class _Chunk:
    """Some of the events: whole columns at a time as long as all is well, one by one to name what is not."""

    def __init__(self, place: Place, low: int, events: list[Any]) -> None:
        self._place = place
        self._low = low
        self._events = events

    def _at(self, index: int) -> Place:
        return Place(self._place.path, f"{self._place.where}[{self._low + index}]", self._events[index])

    def read(self, pools: PoolNumbers, unknown: dict[str, int]) -> Events:
        action = self._actions(unknown)
        nowhere = np.isin(action, (*_NO_ADDRESS, _SKIPPED))
        skipped = action == _SKIPPED
        size = self._column("size", 0, LARGEST, where=~skipped)
        empty = (action == Action.ALLOC) & (size == 0)
        if empty.any():
            raise self._at(int(np.argmax(empty))).field("size").error("is 0: an allocation of nothing")
        return Events(
            action=action,
            address=self._column("addr", 0, ADDRESSES - 1, where=~nowhere),
            bytes=size,
            stream=self._column("stream", -ADDRESSES, ADDRESSES - 1, where=~skipped),
            time_us=self._column("time_us", 0, LARGEST, where=None),
            pool=self._pools(pools),
            row=np.arange(self._low, self._low + len(action), dtype=np.int64),
        )

    def _actions(self, unknown: dict[str, int]) -> UInt8:
        try:
            names = [event["action"] for event in self._events]
        except (TypeError, KeyError, IndexError):
            for index in range(len(self._events)):
                self._at(index).field("action")
            raise
        if any(type(name) is not str for name in names):
            for index in range(len(names)):
                self._at(index).field("action").as_text()
        codes = [_CODES.get(name) for name in names]
        if None in codes:
            for index, code in enumerate(codes):
                if code is None:
                    unknown[names[index]] = unknown.get(names[index], 0) + 1
                    codes[index] = _SKIPPED
            if len(unknown) > 16:
                raise TraceError(self._place.path, self._place.where, "more than 16 unknown kinds of events")
        return np.array(codes, dtype=np.uint8)

    def _column(self, name: str, low: int, high: int, where: np.ndarray[Any, Any] | None) -> Int64:
        """The integers under a key. They must be there `where` says so; if that is None, 0 stands for missing ones."""
        values = [event.get(name) for event in self._events]
        if set(map(type, values)) != {int}:
            needed = np.zeros(len(values), bool) if where is None else where
            for index, value in enumerate(values):
                if type(value) is int and (where is None or needed[index]):
                    continue
                if needed[index] or (where is None and value is not None):
                    self._at(index).field(name).integer(low, high)
                values[index] = 0
        try:
            column = np.array(values, dtype=np.int64)
        except OverflowError:
            column = None
        if column is None or (column < low).any() or (column > high).any():
            for index, value in enumerate(values):
                if not low <= value <= high and (where is None or where[index]):
                    self._at(index).field(name).integer(low, high)
            return np.array([value if low <= value <= high else 0 for value in values], dtype=np.int64)
        return column

    def _pools(self, pools: PoolNumbers) -> Int64:
        pairs = [event.get("pool_id") for event in self._events]
        if pairs.count(pairs[0]) == len(pairs):  # the usual case, at the speed of C
            only = self._at(0).optional("pool_id")
            return np.full(len(pairs), UNKNOWN_POOL if only is None else pools[only.pool_id()], dtype=np.int64)
        numbers: dict[Any, int] = {None: UNKNOWN_POOL}
        column = np.empty(len(pairs), dtype=np.int64)
        for index, pair in enumerate(pairs):
            key = tuple(pair) if type(pair) is list else pair
            try:
                column[index] = numbers[key]
            except (KeyError, TypeError):
                column[index] = numbers[key] = pools[self._at(index).field("pool_id").pool_id()]
        return column
