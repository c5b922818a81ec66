"""Which free ends which allocation, and which blocks were alive before the first event.

The events at one address must go alloc, free_requested, free_completed, alloc and so on. So they are sorted by address,
and within an address in order of time; then all is said by an event and the one before it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from movie.trace.errors import TraceError
from movie.trace.model import Action, Bool, Int64, StartBlocks
from movie.trace.snapshot.events import UNKNOWN_POOL, Events
from movie.trace.snapshot.state import Block, Segment
from movie.trace.snapshot.values import Place

_NOTHING = 255  # the action before the first one at an address
_MIN_SIZE = 512
_LARGE_REST = 1 << 20  # native leaves a rest up to this with a block of the large pool


@dataclass
class Lives:
    """`start`: the blocks before the first event. `ids`: the block of each event, -1 if it is of none.

    `dropped`: events that free what neither the window nor the segments know. `requests_missing`: free_completed events
    without a free_requested before them. `completions_missing`: free_requested events without a free_completed.
    `mismatches`: addresses where the snapshot's blocks are not what the last event left.
    """

    start: StartBlocks
    ids: Int64
    dropped: Bool
    requests_missing: Bool
    completions_missing: Bool
    mismatches: int


class _ByAddress:
    """The events of blocks, ordered by address and time."""

    def __init__(self, events: Events) -> None:
        rows = np.flatnonzero(events.action <= Action.FREE_COMPLETED)
        self.rows = rows[np.argsort(events.address[rows], kind="stable")]
        self.address = events.address[self.rows]
        self.action = events.action[self.rows]
        self.first = np.ones(len(self.rows), dtype=bool)
        self.first[1:] = self.address[1:] != self.address[:-1]
        self.last = np.ones(len(self.rows), dtype=bool)
        self.last[:-1] = self.first[1:]
        self.before = np.full(len(self.rows), _NOTHING, dtype=np.uint8)
        self.before[1:] = self.action[:-1]
        self.before[self.first] = _NOTHING


def find_lives(
    events: Events, *, blocks: list[Block], segments: list[Segment], settings: dict[str, Any], place: Place
) -> Lives:
    """Matches events to blocks.

    `blocks` are those of the snapshot, `segments` those before the first event, `place` is that of the events. Raises
    TraceError for a double free and for the allocation of an address that is alive.
    """
    sorted_events = _ByAddress(events)
    _check_order(sorted_events, events, place)
    action, rows, before = sorted_events.action, sorted_events.rows, sorted_events.before

    no_request = (action == Action.FREE_COMPLETED) & (before == Action.ALLOC)
    if no_request.any() and not (action == Action.FREE_REQUESTED).any():
        # Requests were not recorded at all: blocks from before were not waiting for their completion either.
        no_request |= (action == Action.FREE_COMPLETED) & (before == _NOTHING)

    # A block whose first event frees it was there before, if there was memory at its address.
    position = np.arange(len(rows))
    last_alloc = np.maximum.accumulate(np.where(action == Action.ALLOC, position, -1)) if len(rows) else position
    group = np.maximum.accumulate(np.where(sorted_events.first, position, 0)) if len(rows) else position
    from_start = last_alloc < group
    unknown = from_start & (_room(sorted_events.address, segments, alone=True) <= 0)
    founders = np.flatnonzero(from_start & ~unknown & sorted_events.first)
    pending = (action[founders] == Action.FREE_COMPLETED) & ~no_request[founders]

    start, founder_ids = _start_blocks(
        events,
        founder_rows=rows[founders],
        pending=pending,
        sorted_events=sorted_events,
        blocks=blocks,
        segments=segments,
        settings=settings,
    )
    misplaced = int(np.count_nonzero(start.size > _room(start.address.astype(np.int64), segments)))

    number = np.full(len(events), -1, dtype=np.int64)  # of the block that an alloc or a founder makes
    allocs = np.flatnonzero(events.action == Action.ALLOC)
    number[allocs] = len(start) + np.arange(len(allocs))
    number[rows[founders]] = founder_ids
    ids = np.full(len(events), -1, dtype=np.int64)
    if len(rows):
        ids[rows] = number[rows[np.where(from_start, group, last_alloc)]]

    def over_events(mask: Bool) -> Bool:
        result = np.zeros(len(events), dtype=bool)
        result[rows[mask]] = True
        return result

    return Lives(
        start=start,
        ids=ids,
        dropped=over_events(unknown),
        requests_missing=over_events(no_request & ~unknown),
        completions_missing=over_events(_without_completion(sorted_events, blocks) & ~unknown),
        mismatches=_mismatches(sorted_events, blocks) + misplaced,
    )


def _check_order(sorted_events: _ByAddress, events: Events, place: Place) -> None:
    action, before = sorted_events.action, sorted_events.before
    completions_recorded = bool((action == Action.FREE_COMPLETED).any())
    live = (before == Action.ALLOC) | ((before == Action.FREE_REQUESTED) & np.bool_(completions_recorded))
    freed = (before == Action.FREE_COMPLETED) | (before == Action.FREE_REQUESTED)
    wrong = (
        ((action == Action.ALLOC) & live)
        | ((action == Action.FREE_REQUESTED) & freed)
        | ((action == Action.FREE_COMPLETED) & (before == Action.FREE_COMPLETED))
    )
    if not wrong.any():
        return
    candidates = np.flatnonzero(wrong)
    index = candidates[np.argmin(sorted_events.rows[candidates])]
    row, earlier = (int(events.row[sorted_events.rows[i]]) for i in (index, index - 1))
    address = int(sorted_events.address[index])
    what = "is allocated again" if action[index] == Action.ALLOC else "is freed again"
    state = "alive" if before[index] == Action.ALLOC else "freed"
    since = f"it is {state} since {place.where}[{earlier}]"
    raise TraceError(place.path, f"{place.where}[{row}]", f"{address:#x} {what}, {since}")


def _segment_of(addresses: Int64, segments: list[Segment]) -> Int64:
    """The index of the last segment that begins at or before each address; -1 if none does."""
    return np.searchsorted(np.array([s.address for s in segments], dtype=np.int64), addresses, side="right") - 1


def _room(addresses: Int64, segments: list[Segment], alone: bool = False) -> Int64:
    """Bytes from each address to the end of its segment, or to the next of the (ordered) addresses unless `alone`.

    None or less where there is no segment.
    """
    ends = np.array([-1, *(segment.address + segment.size for segment in segments)], dtype=np.int64)
    limit = ends[_segment_of(addresses, segments) + 1]
    if not alone:
        limit = np.minimum(limit, np.append(addresses[1:], np.iinfo(np.int64).max)[: len(addresses)])
    return limit - addresses


def _without_completion(sorted_events: _ByAddress, blocks: list[Block]) -> Bool:
    """The free_requested events of a recording that left completions out: all but those of blocks that still wait."""
    requests: Bool = sorted_events.action == Action.FREE_REQUESTED
    if (sorted_events.action == Action.FREE_COMPLETED).any():
        return np.zeros(len(requests), dtype=bool)
    waiting = np.array([block.address for block in blocks if block.pending], dtype=np.int64)
    return requests & ~(sorted_events.last & np.isin(sorted_events.address, waiting))


def _mismatches(sorted_events: _ByAddress, blocks: list[Block]) -> int:
    """At how many addresses the snapshot's blocks are not what the last event left."""
    addresses = np.array([block.address for block in blocks], dtype=np.int64)
    waiting = np.array([block.pending for block in blocks], dtype=bool)
    last, action = sorted_events.address[sorted_events.last], sorted_events.action[sorted_events.last]
    held = np.isin(last, addresses[~waiting])
    waits = np.isin(last, addresses[waiting])
    completions_recorded = bool((sorted_events.action == Action.FREE_COMPLETED).any())
    fits = np.select(
        [action == Action.ALLOC, action == Action.FREE_REQUESTED],
        [held, waits | np.bool_(not completions_recorded)],
        ~(held | waits),
    )
    return int(np.count_nonzero(~fits))


def _start_blocks(
    events: Events,
    *,
    founder_rows: NDArray[np.intp],
    pending: Bool,
    sorted_events: _ByAddress,
    blocks: list[Block],
    segments: list[Segment],
    settings: dict[str, Any],
) -> tuple[StartBlocks, Int64]:
    """The blocks before the first event, by address: those that no event touches, and those that are freed.

    Also the ids of the latter.
    """
    touched = np.isin([block.address for block in blocks], sorted_events.address)
    kept = [block for block, gone in zip(blocks, touched.tolist(), strict=True) if not gone]
    columns = list(zip(*kept, strict=True)) or [()] * len(Block._fields)
    untouched = {name: np.array(column, dtype=np.int64) for name, column in zip(Block._fields, columns, strict=True)}

    founded = {
        "address": events.address[founder_rows],
        "bytes": np.maximum(events.bytes[founder_rows], 1),
        "size": np.zeros(len(founder_rows), dtype=np.int64),
        "stream": events.stream[founder_rows],
        "pool": events.pool[founder_rows],
        "pending": pending,
    }
    all_blocks = {name: np.concatenate([untouched[name], founded[name]]) for name in Block._fields}
    order = np.argsort(all_blocks["address"], kind="stable")
    table = {name: column[order] for name, column in all_blocks.items()}
    _fill_from_segments(table, segments, settings)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    start = StartBlocks(
        bytes=table["bytes"],
        size=table["size"],
        address=table["address"].astype(np.uint64),
        stream=table["stream"],
        pool=table["pool"],
        pending=table["pending"].astype(np.bool_),
    )
    return start, place[len(kept) :]


def _fill_from_segments(table: dict[str, Any], segments: list[Segment], settings: dict[str, Any]) -> None:
    """Sizes and pools that no event tells, in place. Blocks that lack one lie in a segment.

    A block that is freed inside the window is known by the bytes asked for. Its size can be larger: native leaves a
    rest of up to 1 MiB (large pool), or any rest if blocks so large are not split at all, with the block. So a gap up
    to the next block that is no larger than such a rest belongs to it.
    """
    address, size = table["address"], table["size"]
    open_sizes = np.flatnonzero(size == 0)
    open_pools = np.flatnonzero(table["pool"] == UNKNOWN_POOL)
    index, room = _segment_of(address, segments), _room(address, segments)
    limit = settings.get("max_split_size", -1)
    for i in open_sizes.tolist():
        segment = segments[index[i]]
        wanted = rounded_size(int(table["bytes"][i]), settings)
        unsplit = type(limit) is int and 0 < limit <= wanted
        rest = int(room[i]) - wanted
        least = _MIN_SIZE if segment.small or segment.expandable else _LARGE_REST + 1
        size[i] = room[i] if rest >= 0 and (rest < least or (unsplit and not segment.expandable)) else wanted
    for i in open_pools.tolist():
        table["pool"][i] = segments[index[i]].pool


def rounded_size(asked: int, settings: dict[str, Any]) -> int:
    """The size of a native block for a request, in bytes: to 512, or by `roundup_power2_divisions` where those are set.

    The divisions for sizes of 2**k MiB to the next power of two stand under the key "2**k" in MiB; below 1 MiB those of
    "1" apply, from 32 GiB on those of "32768".
    """
    if asked < _MIN_SIZE:
        return _MIN_SIZE
    divisions = settings.get("roundup_power2_divisions")
    if isinstance(divisions, dict):
        power = min(max(asked.bit_length() - 21, 0), 15)
        count = divisions.get(str(1 << power), 0)
        if type(count) is int and count > 1 and count & (count - 1) == 0 and asked > _MIN_SIZE * count:
            floor = 1 << (asked.bit_length() - 1)
            step = floor // count
            return floor if asked == floor else -(-asked // step) * step
    return -(-asked // _MIN_SIZE) * _MIN_SIZE
