"""The native core of MOVie: devices, allocators and the replay loop."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray

from movie._core import testing as testing, torch as torch

class DriverFailure(RuntimeError):
    pass

class Driver:
    """
    What a device offers. Sizes in bytes. A call that fails raises DriverFailure with the status as its text, and has changed nothing; a call that breaks a rule raises RuleViolation.
    """

    @property
    def granularity(self) -> int:
        """The unit of physical memory and of mappings."""

    @property
    def free_bytes(self) -> int:
        """Memory of the card that nobody holds."""

    @property
    def total_bytes(self) -> int:
        """Memory of the card."""

    @property
    def ledger(self) -> Ledger: ...
    def reserve(self, size: int) -> int:
        """The address of a new virtual range."""

    def free_address(self, address: int, size: int) -> None: ...
    def create(self, size: int) -> int:
        """A handle of new physical memory."""

    def release(self, handle: int) -> None: ...
    def map(self, address: int, size: int, handle: int) -> None: ...
    def unmap(self, address: int, size: int) -> None: ...
    def set_access(self, address: int, size: int) -> None: ...
    def malloc(self, size: int) -> int:
        """The address of a plain allocation."""

    def mfree(self, address: int) -> None: ...
    def event_record(self, stream: int = 0) -> int:
        """An event behind all work of the stream so far."""

    def event_query(self, event: int) -> bool:
        """Whether all work before the event has finished."""

    def event_synchronize(self, event: int) -> None: ...
    def event_destroy(self, event: int) -> None: ...
    def stream_wait(self, stream: int, event: int) -> None: ...
    def synchronize(self) -> None: ...

class RuleViolation(RuntimeError):
    pass

class ModelOptions:
    """
    What the model device pretends to be. Sizes in bytes, lag in rows (-1: never).
    """

    def __init__(self) -> None: ...
    @property
    def capacity(self) -> int: ...
    @capacity.setter
    def capacity(self, arg: int, /) -> None: ...
    @property
    def granularity(self) -> int: ...
    @granularity.setter
    def granularity(self, arg: int, /) -> None: ...
    @property
    def costs(self) -> str: ...
    @costs.setter
    def costs(self, arg: str, /) -> None: ...
    @property
    def lag(self) -> int: ...
    @lag.setter
    def lag(self, arg: int, /) -> None: ...
    @property
    def seed(self) -> int: ...
    @seed.setter
    def seed(self, arg: int, /) -> None: ...
    @property
    def address_space(self) -> int: ...
    @address_space.setter
    def address_space(self, arg: int, /) -> None: ...
    @property
    def downwards(self) -> bool: ...
    @downwards.setter
    def downwards(self, arg: bool, /) -> None: ...

class Ledger:
    """
    Calls by kind, physical bytes held, modelled seconds: counted by the device.
    """

    @property
    def reserved(self) -> int: ...
    @property
    def peak_reserved(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def stalled_rows(self) -> int: ...
    def count(self, call: str) -> int: ...
    def calls(self) -> dict: ...

class ModelDevice(Driver):
    """
    A device of books only: capacity, costs, strict rules, late events, injected faults.
    """

    def __init__(self, options: ModelOptions = ...) -> None: ...
    @property
    def options(self) -> ModelOptions: ...
    @property
    def mappings(self) -> int: ...
    @property
    def handles(self) -> int: ...
    @property
    def reservations(self) -> int: ...
    @property
    def plain_allocations(self) -> int: ...
    def mapping(self, address: int) -> object:
        """
        (size, handle, accessible) of the mapping that begins at the address, or None.
        """

    def script_addresses(self, addresses: Sequence[int]) -> None:
        """malloc() returns these first, in order."""

    @property
    def now(self) -> int: ...
    @property
    def delay(self) -> float:
        """
        By how much waits have delayed the device, in rows, its streams running side by side.
        """

    def advance(self, stream: int = 0) -> None:
        """A row passes, with work on the stream."""

    def work(self, stream: int) -> None: ...
    def plan(self, stream: int, row: int) -> None: ...
    def finish_all(self) -> None:
        """All work of all streams is done: the program waited for it."""

    def inject(self, call: str, k: int = 1, memory: bool = False) -> None:
        """The k-th next call of this kind fails."""

    def heal(self) -> None:
        """Pending faults are forgotten."""

    def external_take(self, size: int) -> bool: ...
    def external_give(self, size: int) -> None: ...
    def begin_capture(self, stream: int) -> None: ...
    def end_capture(self, stream: int) -> None: ...
    def shut_down(self) -> None: ...

class HostOptions:
    """
    How large a host device is and how late its streams are. Sizes in bytes; lag in ticks, one for each piece of work that is queued (-1: work is done only when the host waits for it).
    """

    def __init__(self) -> None: ...
    @property
    def capacity(self) -> int: ...
    @capacity.setter
    def capacity(self, arg: int, /) -> None: ...
    @property
    def granularity(self) -> int: ...
    @granularity.setter
    def granularity(self, arg: int, /) -> None: ...
    @property
    def costs(self) -> str: ...
    @costs.setter
    def costs(self, arg: str, /) -> None: ...
    @property
    def address_space(self) -> int: ...
    @address_space.setter
    def address_space(self, arg: int, /) -> None: ...
    @property
    def most_areas(self) -> int:
        """Memory areas it may make; 0: what vm.max_map_count leaves."""

    @most_areas.setter
    def most_areas(self, arg: int, /) -> None: ...
    @property
    def lag(self) -> int: ...
    @lag.setter
    def lag(self, arg: int, /) -> None: ...
    @property
    def seed(self) -> int:
        """
        0: all work lags alike; else each stream between 0 and twice the lag, drawn anew now and then.
        """

    @seed.setter
    def seed(self, arg: int, /) -> None: ...
    @property
    def lockstep(self) -> bool:
        """
        What is due is done before the host goes on, so that a run can be repeated.
        """

    @lockstep.setter
    def lockstep(self, arg: bool, /) -> None: ...

class HostReport:
    """What queued work of a host device saw."""

    @property
    def checks(self) -> int:
        """Ranges whose bytes were compared."""

    @property
    def bytes_checked(self) -> int:
        """Length of these ranges."""

    @property
    def mismatches(self) -> int: ...
    @property
    def illegal_accesses(self) -> int:
        """Work on ranges that were not mapped when it ran."""

    @property
    def first_problem(self) -> str: ...

class HostDevice(Driver):
    """
    A device made of this machine's memory: real pages, real aliases, real bytes; its streams are threads that do queued work late.
    """

    def __init__(self, options: HostOptions = ...) -> None: ...
    def fill(self, stream: int, address: int, size: int, pattern: int, stride: int = 512) -> None:
        """
        Queues work that writes a pattern: a word in each 512 bytes near the ends, one each stride between.
        """

    def check(self, stream: int, address: int, size: int, pattern: int, stride: int = 512) -> None:
        """Queues work that looks for the pattern; report() tells what it found."""

    def copy(self, stream: int, to: int, source: int, size: int) -> None:
        """Queues work that copies bytes."""

    def order_behind(self, stream: int, other: int) -> None:
        """
        The program's own ordering: later work of the stream comes after what the other has queued so far.
        """

    def advance(self, ticks: int = 1) -> None:
        """Time passes without new work."""

    def report(self) -> HostReport: ...
    @property
    def areas(self) -> int:
        """Memory areas that its mappings and reservations take."""

    @property
    def most_areas(self) -> int: ...
    @property
    def last_problem(self) -> str:
        """
        Why the system last refused something, and what to do about it; empty if it never did.
        """

    @property
    def mappings(self) -> int: ...
    @property
    def handles(self) -> int: ...
    @property
    def reservations(self) -> int: ...

class SoakResult:
    """What a soak on the host device saw."""

    @property
    def allocations(self) -> int: ...
    @property
    def frees(self) -> int: ...
    @property
    def out_of_memory(self) -> int: ...
    @property
    def uses_by_others(self) -> int:
        """Uses on other streams, told by record_stream()."""

    @property
    def report(self) -> HostReport: ...
    @property
    def views(self) -> dict: ...
    @property
    def waits(self) -> int:
        """Waits of streams that the allocator asked for."""

    @property
    def peak_requested(self) -> int: ...
    @property
    def peak_reserved(self) -> int: ...
    @property
    def left_reserved(self) -> int:
        """Bytes held after everything was freed and given back."""

    @property
    def left_mappings(self) -> int: ...
    @property
    def left_handles(self) -> int: ...
    @property
    def device_problem(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def clean(self) -> bool:
        """Nothing was overwritten early, and nothing unmapped early."""

def soak_host(
    allocator: str,
    options: Mapping[str, str] = {},
    device: HostOptions = ...,
    *,
    operations: int = 100000,
    streams: int = 4,
    threads: int = 1,
    seed: int = 1,
    largest: int = 33554432,
    fill_level: float = 0.75,
    stride: int = 16384,
    pools: bool = False,
    validate: bool = False,
    drop_wait: int = 0,
    drop_every_wait: int = 0,
    early_query: int = 0,
) -> SoakResult:
    """
    Random blocks on late streams of a host device, each with a pattern of its own that is looked for until it is freed.
    Sabotage: the `drop_wait`-th stream_wait, or every so many of them, is dropped; from the `early_query`-th event_query
    on all work is said to be done. The GIL is released.
    """

class OutOfMemory(MemoryError):
    pass

class Allocator:
    """
    An allocator on one device. Sizes in bytes; pool 0 is the default pool.
    """

    def malloc(self, bytes: int, stream: int = 0, pool: int = 0) -> int:
        """
        The address of a new block. Raises OutOfMemory, with a report, when nothing helps.
        """

    def free(self, address: int) -> None:
        """Ends a block. Raises ValueError if there is none."""

    def record_stream(self, address: int, stream: int) -> None:
        """Work of the stream uses the block too. Unknown addresses are ignored."""

    def empty_cache(self) -> None:
        """Gives idle memory back to the driver."""

    def reclaim(self, bytes: int) -> int:
        """Gives back at least `bytes` if that much is idle; returns how much."""

    def release_pool(self, pool: int) -> None:
        """No more allocations go to the pool."""

    def set_pool_lendable(self, pool: int, lendable: bool) -> None:
        """
        Whether free memory of the pool may serve others before a request fails.
        """

    def set_memory_cap(self, bytes: int) -> None:
        """At most this many bytes reserved; 0 lifts the cap."""

    def statistics(self) -> dict:
        """Counters with the keys of torch.cuda.memory_stats()."""

    def unusable(self, stream: int = 0, pool: int = 0) -> dict:
        """
        Reserved bytes that a request of this stream and pool cannot use, by cause.
        """

    def views(self) -> dict:
        """Views created, edited, reused and evicted."""

class AllocatorEntry:
    """An allocator of the catalogue."""

    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def options(self) -> list[str]: ...

def catalogue() -> list[AllocatorEntry]:
    """The allocators that there are, with the options they take."""

def make_allocator(driver: Driver, name: str, options: Mapping[str, str] = {}) -> Allocator:
    """
    An allocator on a device, by its name in the catalogue; option values are texts, sizes in bytes.
    Raises ValueError for an unknown name, option or value.
    """

class ValidationError(RuntimeError):
    """
    An allocator broke an invariant while it was watched; `invariant` is the number of the invariant.
    """

class Watch:
    """
    An independent validator between an allocator and its device. Build one allocator with make(); each of its calls raises ValidationError if an invariant was broken by then.
    """

    def __init__(self, device: Driver, every: int = 64) -> None:
        """
        every: after how many calls the allocator's statistics are compared (0: only in check_all()).
        """

    @property
    def driver(self) -> Driver:
        """The device, watched."""

    def make(self, name: str, options: Mapping[str, str] = {}) -> Allocator:
        """
        An allocator of the catalogue, watched. Raises ValueError for an unknown name, option or value.
        """

    def check_all(self) -> None:
        """Compares all sums with the allocator's statistics and report."""

    def pin(self, address: int) -> None:
        """
        The memory of the live block at this address keeps its mappings from now on.
        """

    def begin_capture(self, stream: int) -> None: ...
    def end_capture(self, stream: int) -> None: ...
    @property
    def held(self) -> int:
        """Physical bytes that the allocator holds, by its driver calls."""

    @property
    def live_blocks(self) -> int: ...
    @property
    def live_requested(self) -> int:
        """Bytes of live blocks as asked for."""

    @property
    def calls(self) -> int: ...

class TraceColumns:
    """
    The columns of a trace, kept without a copy: one-dimensional contiguous numpy arrays.
    """

    def __init__(
        self,
        action: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
        id: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        stream: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        pool: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        address: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        start_bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        start_stream: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        start_pool: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        start_pending: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order="C", device="cpu", writable=False)],
        ids: int,
        completions_recorded: bool,
    ) -> None: ...
    def check(self) -> None:
        """
        Raises ValueError that names the first row which contradicts the others.
        """

class Floor:
    """The lower bound for a trace and its plain peaks, in bytes."""

    @property
    def requested(self) -> int: ...
    @property
    def peak_requested(self) -> int: ...
    @property
    def peak_allocated(self) -> int: ...
    @property
    def row(self) -> int: ...

def floor_of(trace: TraceColumns) -> Floor: ...

class ReplayResult:
    """What an allocator made of a trace. Bytes, rows, modelled seconds."""

    @property
    def completed(self) -> bool: ...
    @property
    def failed_at(self) -> int: ...
    @property
    def failure(self) -> str: ...
    @property
    def peak_requested(self) -> int: ...
    @property
    def peak_reserved(self) -> int: ...
    @property
    def end_reserved(self) -> int: ...
    @property
    def reserved_after_empty_cache(self) -> list[int]: ...
    @property
    def live_after_empty_cache(self) -> list[int]: ...
    @property
    def reserved_at_external(self) -> list[int]: ...
    @property
    def retries(self) -> int: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def before_last_quarter(self) -> Ledger: ...
    @property
    def seconds_last_quarter(self) -> float: ...
    @property
    def seconds_to_first_peak(self) -> float: ...
    @property
    def stalled_rows(self) -> int: ...
    @property
    def main_rows(self) -> int: ...
    @property
    def delayed_rows(self) -> float: ...
    @property
    def delayed_rows_last_quarter(self) -> float: ...
    @property
    def host_ns_per_event(self) -> float: ...
    @property
    def views(self) -> dict: ...
    @property
    def views_last_quarter(self) -> dict: ...
    @property
    def unusable_at_peak(self) -> dict: ...
    @property
    def timeline(self) -> list:
        """
        Tuples (row, requested, reserved): the highest values since the tuple before.
        """

def replay(
    trace: TraceColumns,
    allocator: str,
    options: Mapping[str, str] = {},
    device: ModelOptions = ...,
    *,
    validate: bool = True,
    as_seen: bool = False,
    reclaim: bool = True,
    lendable: Sequence[int] = [],
    samples: int = 0,
    progress: object | None = None,
) -> ReplayResult:
    """
    A trace through an allocator of the catalogue on a model device. The GIL is released; `progress` is called
    with the row every few thousand rows and may raise to stop. Raises ValueError for columns that contradict
    each other and for unknown allocators or options.
    """

class Fidelity:
    """
    How a recording of PyTorch's native allocator differs from the model of it.
    """

    @property
    def allocations(self) -> int: ...
    @property
    def wrong_addresses(self) -> int: ...
    @property
    def segments(self) -> int: ...
    @property
    def unexpected_segments(self) -> int: ...
    @property
    def missing_segments(self) -> int: ...
    @property
    def wrong_segment_sizes(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def mistakes(self) -> int: ...
    @property
    def first_wrong_row(self) -> int: ...
    @property
    def resized_start_blocks(self) -> int: ...

def check_native(
    trace: TraceColumns,
    block_address: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    block_size: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    segment_address: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    segment_size: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    segment_stream: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    segment_pool: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    segment_small: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order="C", device="cpu", writable=False)],
    options: Mapping[str, str] = {},
) -> Fidelity:
    """
    Follows a recording and compares every address and segment with the choice of `native` under these options.
    Start blocks and segments in the order of their addresses. The GIL is released.
    """

class Scan:
    """What a scan found; sizes as of where it ended."""

    @property
    def problem(self) -> bytes:
        """
        What is wrong, as UTF-8 with whatever the file held in between; empty if nothing is.
        """

    @property
    def offset(self) -> int:
        """Of the byte where the problem was seen."""

    @property
    def items(self) -> int:
        """Values seen."""

    @property
    def containers(self) -> int:
        """Lists, dicts and tuples seen."""

    @property
    def depth(self) -> int:
        """Containers inside each other, at most."""

def scan_pickle(data: bytes, depth: int = 64, items: int = 2147483648, bytes_per_container: int = 8) -> Scan:
    """
    Whether a pickle is plain data of bounded depth and size, without building any of it.
    """

def scan_json(data: bytes, depth: int = 64, items: int = 2147483648, bytes_per_container: int = 8) -> Scan:
    """
    Whether the brackets of a JSON text pair up, and its depth and size are bounded.
    """

def combine(
    parts: Sequence[tuple[int, int, int]], need: int, combiner: str = "dynamic"
) -> list[tuple[int, int]] | None:
    """
    Which parts (pages, wait, breaks) hold `need` pages: (index, pages) pairs, the last one perhaps cut; None if all together are too few.
    """

def choice_cost(parts: Sequence[tuple[int, int, int]], choice: Sequence[tuple[int, int]]) -> tuple[int, int, int, int]:
    """(longest wait, pieces, pages left of the cut extent, views broken)."""

def time_combine(parts: Sequence[tuple[int, int, int]], need: int, combiner: str = "dynamic") -> float:
    """Microseconds of processor time that combine() takes."""

class CudaUnavailable(RuntimeError):
    pass

class CudaDevice(Driver):
    """
    A CUDA device through libcuda, in its primary context. A stream is the value of its cudaStream_t. Raises CudaUnavailable where there is none, or none that maps memory.
    """

    def __init__(self, ordinal: int = 0) -> None: ...
    @property
    def ordinal(self) -> int: ...
    def add_peer(self, other: CudaDevice) -> bool:
        """
        From now on the other device may use all memory here; false: the driver refused.
        """

    def last_problem(self) -> str:
        """The last call that failed, and how; empty: none did."""
