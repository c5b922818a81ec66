"""What card does a run need under each allocator, and what does driver work cost as the card gets smaller?"""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from movie import _core
from movie.allocators import AllocatorSpec
from movie.evaluate.columns import columns_of
from movie.evaluate.comparison import Conditions, Facts, Progress, as_recorded, check_costs, facts_of, together
from movie.evaluate.fidelity import native_fidelity
from movie.evaluate.replay import BOUND, ReplayResult, replay
from movie.evaluate.search import Smallest, smallest
from movie.trace import Trace, TraceError, read_trace

STEP = 2 << 20  # bytes: cards that differ by less than a page differ for no allocator
SPARE = 64 << 20  # bytes that every card of a curve has beyond its factor
FACTORS = tuple(map(Fraction, ("1.005", "1.01", "1.02", "1.05", "1.1", "1.25", "1.5")))


@dataclass(frozen=True)
class Point:
    """A card of `factor` times the peak requested bytes and `SPARE`; where the run failed, figures end there."""

    factor: Fraction
    card: int
    result: ReplayResult


@dataclass(frozen=True)
class AllocatorFit:
    """One allocator on one device. Sizes in bytes.

    `smallest_card`: on which the run completes, None where it does on none; `there`: the run on it. `fails_above`:
    larger cards that were tried and on which it does not complete. `ample_reserved`: what it holds where memory is no
    matter.
    """

    allocator: str
    device: int
    ample_reserved: int
    smallest_card: int | None
    there: ReplayResult | None
    fails_above: tuple[int, ...]
    curve: tuple[Point, ...]

    @property
    def monotone(self) -> bool:
        """Whether the run completed on every card that was tried and is larger than the smallest."""
        return not self.fails_above


@dataclass(frozen=True)
class DeviceFit:
    """The allocators on one device of a trace."""

    number: int
    facts: Facts
    allocators: tuple[AllocatorFit, ...]


@dataclass(frozen=True)
class TraceFit:
    """A trace file. `conditions.memory` has no meaning here."""

    facts: Facts
    conditions: Conditions
    warnings: tuple[str, ...]
    devices: tuple[DeviceFit, ...]

    @property
    def completed(self) -> bool:
        """Whether each allocator completes on some card."""
        return all(one.smallest_card is not None for device in self.devices for one in device.allocators)


class _Stopped(Exception):
    """Somebody does not want to know any more."""


class _Runs:
    """Replays of one device under one allocator on cards of any size. Called from several threads."""

    def __init__(self, trace: Trace, columns: _core.TraceColumns, spec: AllocatorSpec, conditions: Conditions) -> None:
        self._trace, self._columns, self._conditions = trace, columns, conditions
        self._spec = spec
        self._stop = threading.Event()

    def stop(self) -> None:
        """Ends the replays that run."""
        self._stop.set()

    def run(self, memory: int | None, *, validate: bool) -> ReplayResult:
        """Raises TraceError for settings of the trace that the allocator does not take."""
        try:
            return replay(
                self._trace,
                self._spec.name,
                self._spec.options,
                memory=memory,
                lag=self._conditions.lag,
                costs=self._conditions.costs,
                seed=self._conditions.seed,
                validate=validate,
                progress=self._look_up,
                columns=self._columns,
            )
        except ValueError as error:
            raise TraceError(self._trace.path, "", f"cannot be replayed under {self._spec}: {error}") from None

    def _look_up(self, row: int) -> None:
        if self._stop.is_set():
            raise _Stopped

    def search(self, floor: int) -> tuple[ReplayResult, Smallest, ReplayResult | None]:
        """The run on an ample card, the smallest card, and the run on it, watched by the validator where wanted."""
        ample = self.run(None, validate=False)
        if self._spec.name == BOUND:
            return ample, Smallest(floor), ample
        if not ample.completed:
            return ample, Smallest(None), None
        found = smallest(
            lambda card: self.run(card, validate=False).completed, low=floor, high=ample.peak_reserved, step=STEP
        )
        there = None if found.size is None else self.run(found.size, validate=self._conditions.validate)
        return ample, found, there


def fit(
    path: Path,
    allocators: Sequence[AllocatorSpec],
    conditions: Conditions,
    factors: Sequence[Fraction] = (),
    *,
    device: int | None = None,
    progress: Progress | None = None,
) -> TraceFit:
    """The smallest card of each allocator for each device of the file, or only `device`, and a point for each factor.

    A capacity that the trace names is not considered. Replays run on all cores; where `conditions.validate`, the points
    and the runs on the smallest cards are watched by the validator, the search is not.

    Raises InputError for a file that cannot be read or replayed, and for conditions that no device can meet.
    """
    check_costs(conditions.costs)
    tell = progress or (lambda what, share: None)
    tell("reading", None)
    traces = read_trace(path, device=device)
    columns = [columns_of(trace) for trace in traces]
    floors = [_core.floor_of(column) for column in columns]
    fidelities = [native_fidelity(trace, column)[0] for trace, column in zip(traces, columns, strict=True)]
    runs = [
        [
            _Runs(trace, column, AllocatorSpec(spec.name, as_recorded(spec, fidelity), str(spec)), conditions)
            for spec in allocators
        ]
        for trace, column, fidelity in zip(traces, columns, fidelities, strict=True)
    ]
    jobs: list[Callable[[], object]] = []
    for floor, on_device in zip(floors, runs, strict=True):
        for one in on_device:
            jobs.append(_search_job(one, floor.requested))
            jobs += [_point_job(one, card_of(factor, floor.requested), conditions.validate) for factor in factors]
    results = iter(_all(jobs, [one.stop for on_device in runs for one in on_device], tell))

    devices = []
    for trace, floor in zip(traces, floors, strict=True):
        fits = []
        for spec in allocators:
            ample, found, there = next(results)
            points = tuple(Point(factor, card_of(factor, floor.requested), next(results)) for factor in factors)
            failing = {p.card for p in points if found.size and p.card > found.size and not p.result.completed}
            fits.append(
                AllocatorFit(
                    allocator=str(spec),
                    device=trace.device,
                    ample_reserved=ample.peak_reserved,
                    smallest_card=found.size,
                    there=there,
                    fails_above=tuple(sorted({*found.fails_above, *failing})),
                    curve=points,
                )
            )
        devices.append(DeviceFit(trace.device, facts_of(trace, floor), tuple(fits)))
    return TraceFit(
        facts=together(path, [one.facts for one in devices]),
        conditions=conditions,
        warnings=tuple(dict.fromkeys(warning for trace in traces for warning in trace.warnings)),
        devices=tuple(devices),
    )


def card_of(factor: Fraction, peak_requested: int) -> int:
    """Bytes of a card of a curve."""
    return int(factor * peak_requested) + SPARE


def _search_job(runs: _Runs, floor: int) -> Callable[[], object]:
    return lambda: runs.search(floor)


def _point_job(runs: _Runs, card: int, validate: bool) -> Callable[[], object]:
    return lambda: runs.run(card, validate=validate)


def _all(jobs: Sequence[Callable[[], object]], stops: Sequence[Callable[[], None]], tell: Progress) -> list[Any]:
    """What the jobs return, in their order. They run on all cores: replays do not hold the interpreter."""
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        futures: list[Future[object]] = [pool.submit(job) for job in jobs]
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                tell(f"{done} of {len(jobs)}", done / len(jobs))
        except BaseException:  # an error of one, or an interrupt: the others are not needed
            for stop in stops:
                stop()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
        return [future.result() for future in futures]
