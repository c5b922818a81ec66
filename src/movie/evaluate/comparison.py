"""One trace file under several allocators: what `movie replay` shows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from movie import _core
from movie.allocators import AllocatorSpec
from movie.errors import InputError
from movie.evaluate.columns import columns_of
from movie.evaluate.fidelity import Fidelity, native_fidelity
from movie.evaluate.replay import BOUND, ReplayResult, replay
from movie.trace import Trace, TraceError, read_trace
from movie.trace.model import Action

_ABOUT_TIME = ("event_record", "event_query", "event_synchronize", "stream_wait", "synchronize")

# What is being done, and the share that is done (0 to 1); None: unknown.
Progress = Callable[[str, float | None], None]


@dataclass(frozen=True)
class Conditions:
    """What a replay supposes.

    `memory`: bytes of the card; None: as the trace says, else ample. `lag`: in rows; None: never.
    `samples`: about how many entries of a timeline to keep, 0 for none.
    """

    memory: int | None = None
    costs: str = "per-call"
    lag: int | None = 1000
    seed: int = 0
    validate: bool = True
    samples: int = 0


@dataclass(frozen=True)
class Facts:
    """What a trace, or one device of it, is. Sizes in bytes.

    `events`, `allocations`: rows. `peak_requested`: live bytes as asked for, isolated pools kept apart.
    `peak_allocated`: live bytes, each block rounded up to 512. `start_live`: bytes asked for, alive before the first
    row. Of a file with several devices `events`, `allocations`, `streams` and `start_live` are sums, the peaks those of
    the device with the most.
    """

    path: str
    events: int
    allocations: int
    streams: int
    devices: int
    peak_requested: int
    peak_allocated: int
    start_live: int
    complete: bool


@dataclass(frozen=True)
class Run:
    """One allocator on one device. `rows`: of the trace, to say how far it came."""

    allocator: str
    device: int
    rows: int
    result: ReplayResult

    @property
    def driver_calls(self) -> int:
        """Calls that obtain, return, map and unmap memory; events and waits are apart."""
        return sum(count for call, count in self.result.driver.items() if call not in _ABOUT_TIME)

    @property
    def is_bound(self) -> bool:
        """Whether this is the floor, no allocator."""
        return self.result.allocator == BOUND


@dataclass(frozen=True)
class DeviceComparison:
    """The runs on one device. `native`: the run of PyTorch's own allocator without options, if there is one.

    `fidelity`: one line on how well the model of `native` predicts the recorded addresses, or why that cannot be told;
    empty where there are none.
    """

    number: int
    facts: Facts
    fidelity: str
    runs: tuple[Run, ...]

    @property
    def native(self) -> Run | None:
        """What others are compared with."""
        return next((run for run in self.runs if run.allocator == "native"), None)


@dataclass(frozen=True)
class Comparison:
    """A trace file under several allocators. `memory`: bytes of the card that was taken; None: ample."""

    facts: Facts
    memory: int | None
    conditions: Conditions
    warnings: tuple[str, ...]
    devices: tuple[DeviceComparison, ...]

    @property
    def completed(self) -> bool:
        """Whether no allocator ran out of memory."""
        return all(run.result.completed for device in self.devices for run in device.runs)


def compare(
    path: Path,
    allocators: Sequence[AllocatorSpec],
    conditions: Conditions,
    *,
    device: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Reads the file and replays each of its devices, or only `device`, under each allocator.

    Raises InputError for a file that cannot be read or replayed, and for conditions that no device can meet.
    """
    check_costs(conditions.costs)
    tell = progress or (lambda what, share: None)
    tell("reading", None)
    traces = read_trace(path, device=device)
    capacities = {trace.capacity for trace in traces}
    memory = (
        conditions.memory if conditions.memory is not None else next(iter(capacities)) if len(capacities) == 1 else None
    )
    devices = tuple(_on_device(trace, allocators, conditions, memory, tell) for trace in traces)
    return Comparison(
        facts=together(path, [comparison.facts for comparison in devices]),
        memory=memory,
        conditions=conditions,
        warnings=tuple(dict.fromkeys(warning for trace in traces for warning in trace.warnings)),
        devices=devices,
    )


def _on_device(
    trace: Trace, allocators: Sequence[AllocatorSpec], conditions: Conditions, memory: int | None, tell: Progress
) -> DeviceComparison:
    columns = columns_of(trace)
    tell("comparing addresses", None)
    fidelity, problem = native_fidelity(trace, columns)
    runs = []
    for spec in allocators:
        what = f"{spec} on device {trace.device}" if trace.devices > 1 else str(spec)
        tell(what, 0.0)
        try:
            result = replay(
                trace,
                spec.name,
                as_recorded(spec, fidelity),
                memory=memory,
                lag=conditions.lag,
                costs=conditions.costs,
                seed=conditions.seed,
                validate=conditions.validate,
                samples=conditions.samples,
                progress=_share(tell, what, len(trace)),
                columns=columns,
            )
        except ValueError as error:  # a setting recorded in the trace that an allocator cannot take
            raise TraceError(trace.path, "", f"cannot be replayed under {spec}: {error}") from None
        runs.append(Run(str(spec), trace.device, len(trace), result))
    facts = facts_of(trace, _core.floor_of(columns))
    return DeviceComparison(trace.device, facts, _fidelity_line(fidelity, problem), tuple(runs))


def as_recorded(spec: AllocatorSpec, fidelity: Fidelity | None) -> dict[str, str]:
    """The options of a run: `native` breaks ties as PyTorch did in the recording, unless it was told how."""
    if spec.name != "native" or fidelity is None:
        return spec.options
    return {"tie": fidelity.tie} | spec.options


def _share(tell: Progress, what: str, rows: int) -> Callable[[int], None]:
    """Progress by rows as progress by share."""
    return lambda row: tell(what, row / max(rows, 1))


def facts_of(trace: Trace, floor: _core.Floor) -> Facts:
    """What a trace is, as tables and documents say it."""
    streams = np.union1d(trace.stream[np.isin(trace.action, (Action.ALLOC, Action.USE))], trace.start.stream)
    return Facts(
        path=trace.path,
        events=len(trace),
        allocations=trace.allocations,
        streams=len(streams),
        devices=1,
        peak_requested=floor.requested,
        peak_allocated=floor.peak_allocated,
        start_live=int(trace.start.bytes[~trace.start.pending].sum()),
        complete=trace.complete,
    )


def together(path: Path, facts: Sequence[Facts]) -> Facts:
    """What a file is, from what its devices are."""
    return Facts(
        path=str(path),
        events=sum(one.events for one in facts),
        allocations=sum(one.allocations for one in facts),
        streams=sum(one.streams for one in facts),
        devices=len(facts),
        peak_requested=max(one.peak_requested for one in facts),
        peak_allocated=max(one.peak_allocated for one in facts),
        start_live=sum(one.start_live for one in facts),
        complete=all(one.complete for one in facts),
    )


def check_costs(name: str) -> None:
    """Raises InputError for a cost table that there is not."""
    options = _core.ModelOptions()
    options.costs = name
    try:
        _core.ModelDevice(options)
    except ValueError as error:
        raise InputError(f"--costs: {error}") from None


def _fidelity_line(found: Fidelity | None, problem: str) -> str:
    """How well the model of native predicts what was recorded, or why that cannot be told."""
    if found is None:
        return f"recorded addresses are not compared with the native model: {problem}" if problem else ""
    right = found.allocations - found.wrong_addresses
    rule = f"tie rule: {' or '.join(found.ties)}"
    return f"native model predicts {right:,} of {found.allocations:,} recorded addresses ({rule})"
