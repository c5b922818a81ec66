"""The smallest phantom card on which a program completes under PyTorch's own allocators: by running it."""

import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace

from movie import _core
from movie.capture.assemble import traces_of
from movie.capture.program import INTERRUPTED, Ended, Watching, watched, why_nothing
from movie.errors import InputError
from movie.evaluate.columns import columns_of
from movie.evaluate.comparison import Conditions, Facts, Progress, facts_of
from movie.evaluate.fit import AllocatorFit, DeviceFit, TraceFit
from movie.evaluate.replay import ReplayResult
from movie.evaluate.search import smallest
from movie.phantom.process import Output
from movie.phantom.settings import PhantomSettings
from movie.sizes import format_size

STEP = 32 << 20  # bytes: what two runs' cards differ by at the end of a search, if nobody says otherwise
_AMPLE = 1 << 40  # bytes: more than any program here can use, and no strain on the address space
_ENDED = (128 + signal.SIGTERM, 128 + signal.SIGHUP)  # exit codes
_KILLED = 128 + signal.SIGKILL
_CHECKS = 2  # larger cards that are tried as well, since nothing promises that they do


@dataclass(frozen=True)
class LiveFit(TraceFit):
    """As of a trace, but each result is that of a run. A card's size includes the context."""

    phantom: PhantomSettings


def live_fit(
    command: Sequence[str],
    allocators: Sequence[str],
    phantom: PhantomSettings,
    *,
    step: int = STEP,
    progress: Progress | None = None,
) -> LiveFit:
    """Runs the program on an ample phantom card, and then on smaller ones, under each allocator (native, expandable).

    A run completes if the program exits with 0 and no allocation failed, not even one that it recovered from. Raises
    InputError for a program that does not complete on the ample card.
    """
    tell = progress or (lambda what, share: None)
    tell(f"{allocators[0]} on an ample card", None)
    facts, first = _recorded(command, replace(phantom, memory=_AMPLE), allocators[0])
    found = []
    for allocator in allocators:
        search = _Search(command, allocator, phantom, facts.peak_requested, tell)
        if allocator == allocators[0]:
            search.knows(_AMPLE, first)
        found.append(search.smallest_card(step))
    return LiveFit(
        facts=facts,
        conditions=Conditions(lag=None if phantom.lag < 0 else phantom.lag, seed=phantom.seed, validate=False),
        warnings=(),
        devices=(DeviceFit(0, facts, tuple(found)),),
        phantom=phantom,
    )


@dataclass(frozen=True)
class _Run:
    completed: bool
    peak_reserved: int
    retries: int


def _recorded(command: Sequence[str], ample: PhantomSettings, allocator: str) -> tuple[Facts, _Run]:
    """What the program asks for, from a run that is recorded, and that run."""
    watching = Watching(ample, allocator, output=Output.TO_STDERR)
    with watched(command, watching) as ended:
        run = _run_of(ended)
        _check(ended)
        _check_allocator(ended, allocator)
        traces = traces_of(ended.recorded[0], ended, watching)
    if not traces:
        raise InputError("the program used a card, but none of its memory")
    if len(traces) > 1:
        raise InputError(f"the program used {len(traces)} cards: the search is over one card's size")
    return replace(facts_of(traces[0], _core.floor_of(columns_of(traces[0]))), path=" ".join(command)), run


def _run_of(ended: Ended) -> _Run:
    """Raises what ends the search where it was a signal that ended the program."""
    if ended.exit_code == INTERRUPTED:
        raise KeyboardInterrupt
    if ended.exit_code in _ENDED:  # we got the signal too, or passed it on
        raise SystemExit(ended.exit_code)
    if ended.exit_code == _KILLED:
        raise InputError("the program was killed: has the machine run out of its own memory?")
    if not ended.recorded:  # no room even for what a program loads before it allocates
        return _Run(False, 0, 0)
    card = ended.recorded[0].facts["devices"][0]
    return _Run(not ended.failed and card["ooms"] == 0, card["peak_reserved"], card["retries"])


def _check(ended: Ended) -> None:
    if not ended.recorded:
        raise InputError(why_nothing(ended))
    if ended.exit_code != 0:
        raise InputError(f"the program fails with exit code {ended.exit_code}, however large the card")


def _check_allocator(ended: Ended, wanted: str) -> None:
    if other := ended.other_allocator(wanted):
        raise InputError(f"{other}: leave that out (movie.enable(), PYTORCH_CUDA_ALLOC_CONF set by the program)")


class _Search:
    """Runs of a program under one allocator."""

    def __init__(
        self, command: Sequence[str], allocator: str, phantom: PhantomSettings, peak_requested: int, tell: Progress
    ) -> None:
        self._command = command
        self._allocator = allocator
        self._phantom = phantom
        self._peak_requested = peak_requested
        self._tell = tell
        self._runs: dict[int, _Run] = {}

    def knows(self, size: int, run: _Run) -> None:
        """A run that was made already."""
        self._runs[size] = run

    def smallest_card(self, step: int) -> AllocatorFit:
        ample = self._run(_AMPLE)
        if not ample.completed:
            raise InputError(f"the program does not complete under {self._allocator}, however large the card")
        context = self._phantom.card.context
        found = smallest(
            self._completes,
            low=self._peak_requested + context,
            high=ample.peak_reserved + context,
            step=step,
            probes=_CHECKS,
        )
        there = None
        if found.size is not None:
            run = self._runs[found.size]
            there = ReplayResult(
                allocator=self._allocator,
                options={},
                memory=found.size,
                completed=True,
                peak_requested=self._peak_requested,
                peak_reserved=run.peak_reserved,
                retries=run.retries,
            )
        return AllocatorFit(
            allocator=self._allocator,
            device=0,
            ample_reserved=ample.peak_reserved,
            smallest_card=found.size,
            there=there,
            fails_above=found.fails_above,
            curve=(),
        )

    def _completes(self, size: int) -> bool:
        return self._run(size).completed

    def _run(self, size: int) -> _Run:
        if size not in self._runs:
            where = "an ample card" if size == _AMPLE else format_size(size)
            self._tell(f"{self._allocator} on {where}", None)
            self._runs[size] = self._new_run(size)
        return self._runs[size]

    def _new_run(self, size: int) -> _Run:
        phantom = replace(self._phantom, memory=size, quiet=True)
        watching = Watching(phantom, self._allocator, history=False, output=Output.NOWHERE)
        with watched(self._command, watching) as ended:
            _check_allocator(ended, self._allocator)
            return _run_of(ended)
