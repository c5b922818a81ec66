"""What the program did that a snapshot does not record as an event: calls of empty_cache, and annotated phases."""

from bisect import bisect_left
from typing import Any, NamedTuple

import numpy as np

from movie.child.names import EMPTY_CACHE, PREFIX
from movie.trace.model import LARGEST, Action, Bool, Int64
from movie.trace.snapshot.events import Events
from movie.trace.snapshot.rewind import Rewound
from movie.trace.snapshot.values import Place

_ACQUIRES = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)
_RELEASES = (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)


def empty_cache_calls(
    events: Events, rewound: Rewound, settings: dict[str, Any], recorded: Place | None, annotations: Place | None
) -> Int64:
    """Before which events the program called empty_cache, ascending.

    Some recorders note it: `empty_cache_calls` is a list of pairs, the allocations and the frees requested before each
    call. `movie capture` annotates the calls that go through Python, and libraries may make others. Otherwise it has to
    be told from bursts of segments given back, which also come from an allocation that found no memory and tried again.
    Such a retry is directly followed by the new segment, or by `oom`. But it would not have been needed where the
    segment fitted beside what was held before the burst, in as much as was held at some other time: there it was
    empty_cache after all (DeepSpeed calls it while it sets up). Collection by age (garbage_collection_threshold) gives
    back segments before it asks for more, too.
    """
    if recorded is not None:
        calls = [_recorded_call(recorded.item(index)) for index in range(len(recorded.as_list()))]
        return _undivided(events, _find_calls(events, calls))
    noted = _positions(events, [time for time, name in _starts(annotations, None) if name == EMPTY_CACHE])
    release = np.isin(events.action, _RELEASES)
    acquire = np.isin(events.action, _ACQUIRES)
    begins = np.flatnonzero(release & ~np.append(False, (release | acquire)[:-1]))
    begins = begins[~np.isin(begins, noted)]
    if not len(begins):
        return noted
    change = np.where(acquire, events.bytes, np.where(release, -events.bytes, 0))
    held = rewound.reserved + np.append(0, np.cumsum(change))  # before each event, and at the end
    most = int(held.max())
    collects = settings.get("garbage_collection_threshold") not in (None, 0, 0.0)
    calls_found = [
        begin
        for begin in begins.tolist()
        if not _is_retry(events, release=release, acquire=acquire, begin=begin, held=held, most=most, collects=collects)
    ]
    return np.sort(np.concatenate([noted, np.array(calls_found, dtype=np.int64)]))


def _is_retry(
    events: Events, *, release: Bool, acquire: Bool, begin: int, held: Int64, most: int, collects: bool
) -> bool:
    end = begin
    while end < len(events) and release[end]:
        end += 1
    if end == len(events):
        return False
    if events.action[end] == Action.OOM:
        return True
    wanted = 0
    while end < len(events) and acquire[end]:
        wanted += int(events.bytes[end])
        end += 1
    return wanted > 0 and (collects or int(held[begin]) + wanted > most)


def _recorded_call(place: Place) -> tuple[int, int]:
    if type(place.value) not in (tuple, list) or len(place.value) != 2:
        raise place.is_not("a pair of integers")
    return place.item(0).integer(0, LARGEST), place.item(1).integer(0, LARGEST)


def _find_calls(events: Events, calls: list[tuple[int, int]]) -> Int64:
    """Where the calls were, ascending; those that fit nowhere are left out."""
    return np.array(sorted(at for at in _positions_of(events, calls) if at >= 0), dtype=np.int64)


def _positions_of(events: Events, counts: list[tuple[int, int]]) -> list[int]:
    """The last position with so many allocations and requested frees before it; -1 where there is none."""
    allocs = np.append(0, np.cumsum(events.action == Action.ALLOC))
    frees = np.append(0, np.cumsum(events.action == Action.FREE_REQUESTED))
    found = []
    for made, freed in counts:
        low, high = np.searchsorted(allocs, made, side="left"), np.searchsorted(allocs, made, side="right")
        position = low + np.searchsorted(frees[low:high], freed, side="right") - 1
        fits = position >= low and allocs[position] == made and frees[position] == freed
        found.append(int(position) if fits else -1)
    return found


class OrderOfWork(NamedTuple):
    """Uses of blocks by other streams, and events that the recorder saw complete; each before the event at `at`."""

    use_at: Int64
    use_stream: Int64
    use_id: Int64
    seen_at: Int64
    seen_stream: Int64
    seen_number: Int64


def order_of_work(events: Events, ids: Int64, recorded: Place | None, device: int) -> OrderOfWork | None:
    """What MOVie notes of the order of work; None where nothing was noted. `ids`: the block of each event.

    `order_of_work` has a list for each device of lists: the allocations and the frees before, "use" or "seen", the
    stream, the address or which of the stream's events. What fits nowhere, or uses no block that is known, is left out.
    """
    if recorded is None or device >= len(recorded.as_list()):
        return None
    noted = recorded.item(device)
    uses: list[tuple[int, int, int]] = []
    seen: list[tuple[int, int, int]] = []
    rows_at: dict[int, list[int]] = {}
    of_blocks = np.flatnonzero((events.action == Action.ALLOC) | (events.action == Action.FREE_REQUESTED))
    for row, address in zip(of_blocks.tolist(), events.address[of_blocks].tolist(), strict=True):
        rows_at.setdefault(address, []).append(row)
    places = [noted.item(index) for index in range(len(noted.as_list()))]
    for place, at in zip(places, _positions_of(events, [_counts(place) for place in places]), strict=True):
        kind, stream, address = place.item(2).as_text(), place.item(3).stream(), place.item(4).integer(0, LARGEST)
        if at < 0:
            continue
        if kind == "seen":
            seen.append((at, stream, address))
            continue
        rows = rows_at.get(address, [])
        last = bisect_left(rows, at) - 1
        if last >= 0 and events.action[rows[last]] == Action.ALLOC and ids[rows[last]] >= 0:
            uses.append((at, stream, int(ids[rows[last]])))
    used = np.array(uses, dtype=np.int64).reshape(-1, 3)
    passed = np.array(seen, dtype=np.int64).reshape(-1, 3)
    return OrderOfWork(*used.T, *passed.T)


def _counts(place: Place) -> tuple[int, int]:
    if type(place.value) not in (tuple, list) or len(place.value) != 5:
        raise place.is_not("what is noted of the order of work")
    return place.item(0).integer(0, LARGEST), place.item(1).integer(0, LARGEST)


def phase_marks(events: Events, annotations: Place | None, device: int) -> tuple[Int64, Int64, tuple[str, ...], Int64]:
    """Where annotated phases begin: positions of events that come after, phases, their names, and times.

    Of the `external_annotations` (record_function) those of stage START on this device, ascending by time.
    """
    starts = [start for start in _starts(annotations, device) if start[1] != EMPTY_CACHE]
    if not events.time_us.any():
        starts = []
    numbers: dict[str, int] = {}
    phases = np.array([numbers.setdefault(name.removeprefix(PREFIX), len(numbers)) for _, name in starts], np.int64)
    times = np.array([time for time, _ in starts], dtype=np.int64)
    return _positions(events, times), phases, tuple(numbers), times


def _starts(annotations: Place | None, device: int | None) -> list[tuple[int, str]]:
    """Times and names of the annotations that begin on a device (None: on any), ascending by time."""
    starts: list[tuple[int, str]] = []
    for index in range(len(annotations.as_list()) if annotations is not None else 0):
        assert annotations is not None
        place = annotations.item(index)
        owner = place.optional("device")
        here = device is None or owner is None or owner.integer(-1, LARGEST) in (device, -1)
        if place.field("stage").as_text() == "START" and here:
            starts.append((place.field("time_us").integer(0, LARGEST), place.field("name").as_text()))
    return sorted(starts, key=lambda start: start[0])


def _positions(events: Events, times: Any) -> Int64:
    """The events that come after, for times that ascend."""
    found = np.searchsorted(np.maximum.accumulate(events.time_us), np.array(times, dtype=np.int64), side="left")
    return _undivided(events, found.astype(np.int64))


def _undivided(events: Events, positions: Int64) -> Int64:
    """The same positions, moved back where they would part what is one step of the allocator.

    A free that completes at once is two events, and an allocation is recorded after the changes of segments for it.
    """
    apart = np.ones(len(events) + 1, dtype=bool)
    completes = (events.action[1:] == Action.FREE_COMPLETED) & (events.action[:-1] == Action.FREE_REQUESTED)
    apart[1:-1] = ~(completes & (events.address[1:] == events.address[:-1]))
    apart[1:] &= ~np.isin(events.action, (*_ACQUIRES, *_RELEASES))
    places = np.arange(len(apart))
    return np.maximum.accumulate(np.where(apart, places, 0))[positions]
