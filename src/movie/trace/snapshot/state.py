"""The segments and blocks of a snapshot: what the allocator held when it was taken."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from movie.trace.model import DEFAULT_POOL
from movie.trace.snapshot.values import ADDRESSES, Place

MOST_DEVICES = 1024
_LIVE = "active_allocated"
_PENDING = ("active_pending_free", "active_awaiting_free")  # the newer name and the older one
_FREE = "inactive"


class Segment(NamedTuple):
    """A segment of a native snapshot, or one contiguous mapped range of an expandable segment."""

    address: int
    size: int
    stream: int
    pool: int
    small: bool
    expandable: bool


class Block(NamedTuple):
    """A block that is in use or waits for an event. `bytes` as asked for, `size` as the allocator rounded it."""

    address: int
    bytes: int
    size: int
    stream: int
    pool: int
    pending: bool


@dataclass
class DeviceState:
    """Of one device, both ordered by address."""

    segments: list[Segment] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)


class PoolNumbers:
    """Numbers for the pairs by which torch names its pools: 0 is the default, others count from 1 as they appear."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int], int] = {(0, 0): 0}

    def __getitem__(self, pair: tuple[int, int]) -> int:
        return self._numbers.setdefault(pair, len(self._numbers))

    @property
    def names(self) -> tuple[str, ...]:
        return (DEFAULT_POOL, *(f"{a}:{b}" for a, b in list(self._numbers)[1:]))


def read_state(segments: Place, pools: PoolNumbers) -> dict[int, DeviceState]:
    """The states of the devices that have segments. Raises TraceError for whatever cannot be one."""
    devices: dict[int, DeviceState] = {}
    seen: set[int] = set()
    for index in range(len(segments.as_list())):
        place = segments.item(index)
        device = place.optional("device")
        number = 0 if device is None else device.integer(0, MOST_DEVICES - 1)
        blocks = place.field("blocks")
        # A pickle can hold one list a thousand times over for a few bytes. Memory has one place.
        if id(blocks.as_list()) in seen:
            raise blocks.error("is the list of another segment as well")
        seen.add(id(blocks.value))
        state = devices.setdefault(number, DeviceState())
        segment = _read_segment(place, pools)
        state.segments.append(segment)
        state.blocks.extend(_read_blocks(blocks, segment))
    for number, state in devices.items():
        state.segments.sort()
        state.blocks.sort()
        for before, after in zip(state.segments, state.segments[1:], strict=False):
            if before.address + before.size > after.address:
                raise segments.error(f"two segments of device {number} overlap at {after.address:#x}")
    return devices


def _read_segment(place: Place, pools: PoolNumbers) -> Segment:
    kind = place.field("segment_type")
    if kind.as_text() not in ("small", "large"):
        raise kind.error(f"is '{kind.value}', not 'small' or 'large'")
    pool = place.optional("segment_pool_id")
    expandable = place.optional("is_expandable")
    segment = Segment(
        address=place.field("address").address(),
        size=place.field("total_size").size(least=1),
        stream=place.field("stream").stream(),
        pool=0 if pool is None else pools[pool.pool_id()],
        small=kind.value == "small",
        expandable=expandable is not None and expandable.as_flag(),
    )
    if segment.address + segment.size > ADDRESSES:
        raise place.error("reaches beyond the address space")
    return segment


def _read_blocks(places: Place, segment: Segment) -> Iterable[Block]:
    """The blocks in use. Old snapshots give no addresses: there the blocks fill the segment without gaps."""
    end = segment.address
    for index in range(len(places.value)):
        place = places.item(index)
        size = place.field("size").size(least=1)
        given = place.optional("address")
        address = end if given is None else given.address()
        if address < end or address + size > segment.address + segment.size:
            raise place.error("lies in the block before it or outside of its segment")
        end = address + size
        state = place.field("state").as_text()
        if state == _FREE:
            continue
        if state != _LIVE and state not in _PENDING:
            raise place.error(f"has the unknown state '{state}'")
        asked = place.optional("requested_size")
        requested = size if asked is None else asked.size(least=1)
        if requested > size:
            raise place.error(f"has {size} bytes, less than the {requested} asked for")
        yield Block(address, requested, size, segment.stream, segment.pool, state != _LIVE)
