"""
MOVie under torch: one allocator a device, made when it is first asked for. Sizes in bytes.
"""

from collections.abc import Mapping

import movie._core

def hooks() -> dict:
    """
    The addresses of the functions that torch's pluggable allocator calls, by its names.
    """

def bridge_table() -> int:
    """The address of what the compiled bridge is given."""

def driver_version() -> int:
    """
    Of the CUDA that the driver offers, as 1000 x major + 10 x minor. Initialises nothing; raises CudaUnavailable.
    """

def inspect_devices() -> list[tuple[str, str]]:
    """
    (name, problem) of each device; no problem: MOVie can use it. Initialises the driver; raises CudaUnavailable.
    """

def check(policy: str, options: Mapping[str, str]) -> None:
    """Raises ValueError for what cannot be configured."""

def configure(policy: str, options: Mapping[str, str], cap: int) -> None:
    """Of devices made from now on. Raises ValueError for what cannot be."""

def find_torch_exception() -> bool:
    """Whether torch's own out-of-memory exception can be thrown."""

def devices() -> list[int]:
    """The devices that were allocated from."""

def statistics(device: int) -> dict:
    """Counters with the keys of torch.cuda.memory_stats()."""

def views(device: int) -> dict:
    """Views created, edited, reused and evicted."""

def unusable(device: int, stream: int = 0) -> dict:
    """Reserved bytes that a request cannot use, by cause."""

def account(device: int) -> movie._core.Ledger:
    """Driver calls made and memory held, counted by the device."""

def last_problem(device: int) -> str:
    """The last driver call that failed, and how; empty: none did."""

def reset_peaks(device: int) -> None: ...
def reset_accumulated(device: int) -> None: ...
def fraction(device: int) -> float: ...
def reclaim(device: int, bytes: int) -> int:
    """Gives back at least `bytes` if that much is idle; returns how much."""

def record_history(most: int, stacks: str = "none", keep: bool = False) -> None:
    """
    Keeps the last `most` events of each device, with the Python stacks of: none, alloc, all (frees too). Those kept before are dropped, unless `keep` is asked for and the number is the same.
    """

def observe_out_of_memory(observer: object) -> None:
    """
    Calls observer(device, bytes wanted, bytes reserved, bytes free on the card) before an out-of-memory is raised.
    """

def history(device: int) -> list:
    """
    (kind, address, size, stream, pool, stack, time in microseconds) of each event, oldest first.
    """

def layout(device: int) -> list:
    """
    (address, size, stream, pool, whether it is a view, blocks) of each segment, blocks as (address, size, requested, state, stack).
    """

def stack_frames(number: int) -> list:
    """(code object, line) of each frame of a stack, innermost first."""
