"""Allocators for tests of tests."""

from collections.abc import Callable, Mapping, Sequence

import movie._core

def flaws() -> list[tuple[str, int, str]]:
    """
    (name, number of the invariant that it breaks, what it does) of each broken allocator.
    """

class ReferenceControls:
    def set_capturing(self, on: bool) -> None: ...
    def pin(self, address: int) -> None: ...

def watch_reference(watch: object, flaw: str = "") -> tuple:
    """
    (allocator, controls): a simple correct allocator, or the one with that flaw, under a Watch.
    """

class PoolMoment:
    """What lives in a pool at some moment."""

    @property
    def blocks(self) -> list[tuple[int, int, int, bool]]:
        """
        (address, bytes asked for, stream, whether it lies in a view) of each, by address.
        """

class MovieControls:
    """What torch will tell MOVie by other ways than the allocator interface."""

    def begin_capture(self) -> None: ...
    def end_capture(self) -> None: ...
    def pin(self, address: int) -> None: ...
    def on_shortage(self, reclaim: Callable[[int], int]) -> None:
        """
        Asked before a request fails; returns how many bytes of the card came free.
        """

    def moment(self, pool: int) -> PoolMoment:
        """What lives in the pool."""

    def rewind(self, moment: PoolMoment) -> None:
        """Back to an earlier moment of its pool."""

    def lives_exactly(self, pool: int, blocks: Sequence[int]) -> bool:
        """Whether these are all blocks that live in the pool."""

    def history(self) -> list[tuple[str, int, int, int, int, int]]:
        """
        (kind, address, size, stream, pool, number) of the last events, oldest first.
        """

def watch_movie(watch: object, name: str = "movie", options: Mapping[str, str] = {}) -> tuple:
    """
    (allocator, controls): MOVie under a Watch, with what is not in the allocator interface.
    """

class Script:
    def answer(self, address: int) -> None:
        """What the next malloc() returns; 0: it runs out of memory."""

def watch_script(watch: object) -> tuple:
    """
    (allocator, script): an allocator whose answers a test gives, under a Watch.
    """

def replay_reference(
    trace: movie._core.TraceColumns, device: movie._core.ModelOptions = ..., flaw: str = "", validate: bool = True
) -> movie._core.ReplayResult:
    """
    As movie._core.replay, with the reference allocator or one with a flaw.
    """
