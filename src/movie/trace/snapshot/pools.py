"""Pools of events that do not name theirs, as those of torch before 2.9: they are the pools of the segments around."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from movie.trace.model import LARGEST, Action, Int64
from movie.trace.snapshot.events import UNKNOWN_POOL, Events
from movie.trace.snapshot.rewind import Rewound
from movie.trace.snapshot.state import MOST_DEVICES, PoolNumbers, Segment
from movie.trace.snapshot.values import Place

_RELEASES = (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)
_PARTS = 5


class NotedSegment(NamedTuple):
    """A segment that was seen while the program ran: before the event in this row of its device's list."""

    row: int
    address: int
    size: int
    pool: int


def noted_segments(place: Place | None, pools: PoolNumbers, device: int) -> list[NotedSegment]:
    """The segments of private pools that `movie capture` saw before they could be given back; of one device.

    `private_segments` is a list of lists: the device, how many events it had, the address, the size, the pool's pair.
    """
    if place is None:
        return []
    noted = []
    for index in range(len(place.as_list())):
        row = place.item(index)
        if len(row.as_list()) != _PARTS:
            raise row.is_not("a noted segment: device, events, address, size, pool")
        number = row.item(0).integer(0, MOST_DEVICES - 1)
        before, address, size = row.item(1).integer(0, LARGEST), row.item(2).address(), row.item(3).size(least=1)
        pool = pools[row.item(4).pool_id()]
        if number == device:
            noted.append(NotedSegment(before, address, size, pool))
    return noted


def fill_pools(events: Events, rewound: Rewound, final: list[Segment], noted: list[NotedSegment]) -> None:
    """Pools of events that do not name theirs, in place: of the segments they lie in, else the default.

    Of a segment that was given back inside the window, the pool is known only if the segment was noted.
    """
    unknown = events.pool == UNKNOWN_POOL
    if unknown.any():
        order = np.argsort(events.address, kind="stable")
        ordered = events.address[order]

        def fill(low: int, high: int, first: int, end: int, pool: int) -> None:
            """Events at these addresses, from the first up to the end."""
            start, stop = np.searchsorted(ordered, (low, high))
            inside = order[start:stop]
            events.pool[inside[unknown[inside] & (inside >= first) & (inside < end)]] = pool

        for segment, born in zip(final, rewound.born.tolist(), strict=True):
            if segment.pool:
                fill(segment.address, segment.address + segment.size, born, len(events), segment.pool)
        releases = _Releases(events)
        known: dict[NotedSegment, int] = {}  # with row 0: up to which event its life is filled in
        for seen in noted:
            at = int(np.searchsorted(events.row, seen.row))
            anytime = seen._replace(row=0)
            if at < known.get(anytime, 0):
                continue  # noted before, and not given back since
            after = list(releases.life_after(at, seen.address, seen.address + seen.size))
            for low, high, end in after:
                fill(low, high, at, end, seen.pool)
            for low, high, first in releases.life_before(at, seen.address, seen.address + seen.size):
                fill(low, high, first, at, seen.pool)
            known[anytime] = min(end for _, _, end in after)
    events.pool[events.pool == UNKNOWN_POOL] = 0


class _Releases:
    """Where and when memory was given back: so long had the memory of a noted segment been this segment, or stayed it.

    Parts of an expandable segment can be given back alone: the others live on.
    """

    def __init__(self, events: Events) -> None:
        self._total = len(events)
        self._rows = np.flatnonzero(np.isin(events.action, _RELEASES))
        self._starts = events.address[self._rows]
        self._ends = self._starts + events.bytes[self._rows]

    def life_after(self, at: int, low: int, high: int) -> Iterator[tuple[int, int, int]]:
        """The parts of a range, and the event after the one that gives each back, from the event `at` on."""
        split = int(np.searchsorted(self._rows, at))
        for start, end, row in self._parts(np.arange(split, len(self._rows)), low, high):
            yield start, end, self._total if row is None else row + 1

    def life_before(self, at: int, low: int, high: int) -> Iterator[tuple[int, int, int]]:
        """The parts of a range, and the event after the last one that gave each back, before the event `at`."""
        split = int(np.searchsorted(self._rows, at))
        for start, end, row in self._parts(np.arange(split)[::-1], low, high):
            yield start, end, 0 if row is None else row + 1

    def _parts(self, releases: Int64, low: int, high: int) -> Iterator[tuple[int, int, int | None]]:
        """Parts of a range, each with the first of the releases that gives it back, if one does."""
        waiting = [(low, high, 0)]
        while waiting:
            low, high, after = waiting.pop()
            later = releases[after:]
            touching = np.flatnonzero((self._starts[later] < high) & (self._ends[later] > low))
            if not len(touching):
                yield low, high, None
                continue
            place = later[touching[0]]
            start, end = int(self._starts[place]), int(self._ends[place])
            yield max(low, start), min(high, end), int(self._rows[place])
            after += int(touching[0]) + 1
            waiting += [(a, b, after) for a, b in ((low, start), (end, high)) if a < b]
