"""The segments before the first event: those of the snapshot, with the recorded changes undone from last to first."""

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from movie.trace.model import LARGEST, Action, Int64
from movie.trace.snapshot.events import UNKNOWN_POOL, Events
from movie.trace.snapshot.state import Segment

_SMALL_SEGMENT = 2 << 20  # what native asks the driver for to serve small requests; also the page of an expandable one


@dataclass
class Rewound:
    """`segments` before the first event, ordered by address, and the bytes `reserved` then.

    `born`, of the snapshot's own segments in their order: the event that made each (-1: none recorded).
    `mismatches`: events that do not fit the snapshot's segments.
    """

    segments: list[Segment]
    reserved: int
    born: Int64
    mismatches: int


def rewind_segments(events: Events, final: list[Segment]) -> Rewound:
    """Undoes segment_alloc, segment_free, segment_map and segment_unmap events.

    What a segment freed inside the window was for is not recorded: one of exactly 2 MiB was small; its pool is that of
    the event if it names one, else the default.
    """
    whole = {segment.address: segment for segment in final if not segment.expandable}
    mapped = _Ranges([segment for segment in final if segment.expandable])
    position = {segment.address: index for index, segment in enumerate(final)}
    born = np.full(len(final), -1, dtype=np.int64)
    mismatches = 0
    changes = np.flatnonzero((events.action >= Action.SEGMENT_ALLOC) & (events.action <= Action.SEGMENT_UNMAP))
    columns = (events.action, events.address, events.bytes, events.stream, events.pool)
    rows = zip(changes.tolist(), *(column[changes].tolist() for column in columns), strict=True)
    for row, action, address, size, stream, pool in reversed(list(rows)):
        segment = Segment(
            address, size, stream, 0 if pool == UNKNOWN_POOL else pool, _is_small(size), action > Action.SEGMENT_FREE
        )
        if action == Action.SEGMENT_ALLOC:
            gone = whole.pop(address, None)
            mismatches += gone is None or gone.size != size
            if gone is not None and (index := position.get(address)) is not None and final[index] is gone:
                born[index] = row
        elif action == Action.SEGMENT_FREE:
            mismatches += address in whole
            whole[address] = segment
        elif action == Action.SEGMENT_MAP:
            mismatches += not mapped.remove(address, address + size)
        else:
            mismatches += not mapped.add(segment)
    segments = sorted([*whole.values(), *mapped.segments()])
    return Rewound(segments, min(sum(segment.size for segment in segments), LARGEST), born, mismatches)


def _is_small(size: int) -> bool:
    return size == _SMALL_SEGMENT


class _Ranges:
    """Disjoint mapped ranges, ordered by address."""

    def __init__(self, segments: list[Segment]) -> None:
        self._ranges = sorted(segments)
        self._starts = [segment.address for segment in self._ranges]

    def segments(self) -> list[Segment]:
        return self._ranges

    def _at(self, address: int) -> int:
        """The index of the last range that begins at or before an address; -1 if there is none."""
        return bisect_right(self._starts, address) - 1

    def _put(self, low: int, high: int, ranges: list[Segment]) -> None:
        self._ranges[low:high] = ranges
        self._starts[low:high] = [segment.address for segment in ranges]

    def remove(self, start: int, end: int) -> bool:
        """Takes a range out. False, and nothing done, if it is not wholly mapped as one."""
        index = self._at(start)
        if index < 0:
            return False
        held = self._ranges[index]
        if held.address + held.size < end:
            return False
        rest = []
        if start > held.address:
            rest.append(held._replace(size=start - held.address))
        if end < held.address + held.size:
            rest.append(held._replace(address=end, size=held.address + held.size - end))
        self._put(index, index + 1, rest)
        return True

    def add(self, new: Segment) -> bool:
        """Puts a range in, joined to those that it touches and that tell its pool and kind.

        False, and nothing done, if a part of it is mapped already.
        """
        before = self._at(new.address)
        after = before + 1
        if before >= 0 and self._ranges[before].address + self._ranges[before].size > new.address:
            return False
        if after < len(self._ranges) and self._ranges[after].address < new.address + new.size:
            return False
        joined, low, high = new, after, after
        if before >= 0:
            left = self._ranges[before]
            if left.address + left.size == new.address and left.stream == new.stream:
                joined, low = left._replace(size=left.size + new.size), before
        if after < len(self._ranges):
            right = self._ranges[after]
            if right.address == new.address + new.size and right.stream == new.stream:
                joined, high = right._replace(address=joined.address, size=joined.size + right.size), after + 1
        self._put(low, high, [joined])
        return True
