"""What `movie demo` shows: two recorded training runs that ship with the package, on ample and on tight cards, and a
short run in real memory."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from movie import _core
from movie.allocators import AllocatorSpec
from movie.evaluate.comparison import Comparison, Run
from movie.report.terminal import driver_time
from movie.sizes import format_size

_FOLDER = Path(__file__).parent / "data"
_OURS = "movie"

# What the runs are, by file name.
TITLES = {
    "hf_opt1.3b_R_var": "OPT-1.3B, Hugging Face, recomputation, batches of varying length, one stream",
    "fsdp2_opt6.7b_R_w8": "OPT-6.7B, FSDP2 on 8 GPUs, recomputation, batches of varying length, three streams",
}


def recordings() -> list[Path]:
    """The files, in the order in which the demonstration shows them."""
    return [_FOLDER / f"{name}.parquet" for name in TITLES]


def allocators() -> list[AllocatorSpec]:
    """PyTorch's own, and ours."""
    return [AllocatorSpec("native"), AllocatorSpec(_OURS)]


def tight_card(peak_requested: int) -> int:
    """Bytes of a card that the run just fits: 1 % above what it asks for at its peak, and 64 MiB."""
    return peak_requested * 101 // 100 + 64 * 2**20


def real_bytes() -> str:
    """A short run in this machine's memory, told in a sentence.

    Random blocks on four late streams, on a card so small that free pages have to be put side by side; every block's
    bytes are checked. Raises RuntimeError if any are wrong.
    """
    card = _core.HostOptions()
    card.capacity, card.lag, card.seed = 128 * 2**20, 50, 1
    run = _core.soak_host("movie-lean", {}, card, operations=2000, largest=16 * 2**20)
    report = run.report
    if not run.clean:
        raise RuntimeError(f"MOVie let bytes be overwritten: {report.first_problem}; please report this")
    stitched = run.views["created"] + run.views["edited"] + run.views["reused"]
    return (
        f"With real bytes, in {format_size(run.peak_reserved)} of this machine's memory: of {run.allocations:,} blocks "
        f"on 4 streams, {stitched:,} were stitched from pages that do not lie side by side; {report.checks:,} checks "
        f"over {format_size(report.bytes_checked)} found what had been written."
    )


def seen(pairs: Sequence[tuple[Comparison, Comparison]]) -> list[str]:
    """Two sentences on what the replays showed; `pairs`: of each recording the ample and the tight card."""
    ample = [comparison for comparison, _ in pairs]
    tight = [comparison for _, comparison in pairs]
    asked = _and(format_size(comparison.facts.peak_requested) for comparison in ample)
    first = (
        f"On ample cards, for runs that ask for {asked}, PyTorch's own allocator holds {_held(ample, 'native')} "
        f"and {_OURS} {_held(ample, _OURS)}."
    )
    cards = _and(format_size(comparison.memory or 0) for comparison in tight)
    second = (
        f"On cards of {cards}, 1 % and 64 MiB more than that, PyTorch's own allocator {_ending(tight, 'native')}; "
        f"{_OURS} {_ending(tight, _OURS)}."
    )
    return [first, second]


def _run(comparison: Comparison, allocator: str) -> Run:
    return next(run for device in comparison.devices for run in device.runs if run.allocator == allocator)


def _held(comparisons: Sequence[Comparison], allocator: str) -> str:
    return _and(format_size(_run(comparison, allocator).result.peak_reserved) for comparison in comparisons)


def _ending(comparisons: Sequence[Comparison], allocator: str) -> str:
    results = [_run(comparison, allocator).result for comparison in comparisons]
    completed = [result for result in results if result.completed]
    if not completed:
        return f"runs out of memory in {_count(len(results), len(results))}"
    work = _and(driver_time(result.driver_seconds_last_quarter) for result in completed)
    return (
        f"completes {_count(len(completed), len(results))}, with {work} of modelled driver work in the last quarter of "
        "the run"
    )


def _count(count: int, of: int) -> str:
    if count < of:
        return f"{count} of {of}"
    return "both" if of == 2 else "all"


def _and(texts: Iterable[str]) -> str:
    return " and ".join(texts)
