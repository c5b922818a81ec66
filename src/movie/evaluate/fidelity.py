"""Does `native` do what PyTorch did? A recording's addresses and segments against the model's own choices.

    python -m movie.evaluate.fidelity PATH...

prints a table with a line for each device of each file: the tie rule that fits best, allocations, wrong addresses,
unexpected and missing segments, segments of the wrong size, steps that could not be followed, start blocks whose size
the recording itself corrected. A folder stands for the files in it. Exits with 1 if anything differs.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from movie import _core
from movie.errors import InputError
from movie.evaluate.columns import columns_of
from movie.evaluate.settings import native_options
from movie.trace.model import Action, Trace

TIE_RULES = ("address", "segment", "block")  # torch up to 2.11; torch 2.13 and later; torch 2.12
_RARE = "block"


@dataclass(frozen=True)
class Fidelity:
    """How a recording differs from the choices of `native`. All counts; exact if all but the first two are 0.

    `tie`: the rule of TIE_RULES that fits best. `ties`: the rules that fit equally well; both do where there never were
    two free blocks of one size to choose from. That of torch 2.12 is tried, and named, only where neither other fits.
    """

    tie: str
    ties: tuple[str, ...]
    allocations: int
    segments: int  # allocated in the recording
    wrong_addresses: int
    unexpected_segments: int  # allocated although the model has a free block that serves
    missing_segments: int  # not allocated although the model has none
    wrong_segment_sizes: int
    lost: int  # steps that could not be followed
    first_wrong_row: int | None
    resized_start_blocks: int  # whose true size only the recording's later rows told

    @property
    def mistakes(self) -> int:
        """All differences, of any kind."""
        return (
            self.wrong_addresses
            + self.unexpected_segments
            + self.missing_segments
            + self.wrong_segment_sizes
            + self.lost
        )

    @property
    def exact(self) -> bool:
        """Whether the model did all that was recorded, and nothing else."""
        return self.mistakes == 0


def can_check(trace: Trace) -> bool:
    """Whether the trace tells what PyTorch's native allocator chose: addresses, and no expandable segments."""
    mapped = np.isin(trace.action, (Action.SEGMENT_MAP, Action.SEGMENT_UNMAP))
    allocs = trace.action == Action.ALLOC
    return bool(
        allocs.any()
        and trace.address[allocs].all()
        and (len(trace.segments) or (trace.action == Action.SEGMENT_ALLOC).any())
        and not mapped.any()
        and not trace.segments.expandable.any()
    )


def check_native(trace: Trace, columns: _core.TraceColumns | None = None) -> Fidelity:
    """Follows the recording with the model under the tie rules and reports the one that fits best.

    The settings are those recorded with the trace. Raises ValueError for a trace that `can_check` turns down, or whose
    start state contradicts itself.
    """
    if not can_check(trace):
        raise ValueError("the trace does not record the native allocator's choices")
    columns = columns_of(trace) if columns is None else columns
    options = native_options(trace)
    found: dict[str, _core.Fidelity] = {}
    for tie in TIE_RULES:
        if tie == _RARE and any(result.mistakes == 0 for result in found.values()):
            break
        found[tie] = _check(trace, columns, options | {"tie": tie})
    fewest = min((result.mistakes, result.resized_start_blocks) for result in found.values())
    ties = tuple(tie for tie, result in found.items() if (result.mistakes, result.resized_start_blocks) == fewest)
    best = found[ties[0]]
    return Fidelity(
        tie=ties[0],
        ties=ties,
        allocations=best.allocations,
        segments=best.segments,
        wrong_addresses=best.wrong_addresses,
        unexpected_segments=best.unexpected_segments,
        missing_segments=best.missing_segments,
        wrong_segment_sizes=best.wrong_segment_sizes,
        lost=best.lost,
        first_wrong_row=None if best.first_wrong_row < 0 else best.first_wrong_row,
        resized_start_blocks=best.resized_start_blocks,
    )


def native_fidelity(trace: Trace, columns: _core.TraceColumns) -> tuple[Fidelity | None, str]:
    """What `check_native` finds, where it can; else None, and why if the trace has what PyTorch cannot have done."""
    if not can_check(trace):
        return None, ""
    try:
        return check_native(trace, columns), ""
    except ValueError as error:  # settings that PyTorch refuses, a start state that contradicts itself
        return None, str(error)


def _check(trace: Trace, columns: _core.TraceColumns, options: dict[str, str]) -> _core.Fidelity:
    blocks, segments = trace.start, trace.segments
    return _core.check_native(
        columns,
        block_address=np.ascontiguousarray(blocks.address),
        block_size=np.ascontiguousarray(blocks.size),
        segment_address=np.ascontiguousarray(segments.address),
        segment_size=np.ascontiguousarray(segments.size),
        segment_stream=np.ascontiguousarray(segments.stream),
        segment_pool=np.ascontiguousarray(segments.pool),
        segment_small=np.ascontiguousarray(segments.small),
        options=options,
    )


HEADINGS = ("tie", "allocs", "wrong", "unexpected", "missing", "size", "lost", "resized", "file")


def _lines(paths: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """A row of the table for each device that can be checked; the others are named on standard error."""
    from movie.trace import read_trace  # noqa: PLC0415  -- readers are slow to import

    for path in _files(paths):
        for trace in read_trace(path):
            name = path.name if trace.devices == 1 else f"{path.name} (device {trace.device})"
            if not can_check(trace):
                print(f"{name}: no choices of the native allocator in it", file=sys.stderr)
                continue
            try:
                result = check_native(trace)
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from error
            figures = (
                result.allocations,
                result.wrong_addresses,
                result.unexpected_segments,
                result.missing_segments,
                result.wrong_segment_sizes,
                result.lost,
                result.resized_start_blocks,
            )
            yield ("|".join(result.ties), *map(str, figures), name)


def _files(paths: Sequence[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        if path.is_dir():
            suffixes = {".pickle", ".gz", ".html"}
            yield from sorted(file for file in path.iterdir() if file.suffix in suffixes)
        else:
            yield path


def main(paths: Sequence[str]) -> int:
    """Prints the table; 0 if every recording is predicted exactly, 1 if not, 2 for a file that cannot be read."""
    if not paths:
        print("usage: python -m movie.evaluate.fidelity PATH...", file=sys.stderr)
        return 2
    widths = [max(len(heading), 7) for heading in HEADINGS[:-1]]
    widths[0] = len("|".join(TIE_RULES))

    def show(cells: Sequence[str]) -> None:
        head = cells[0].ljust(widths[0])
        middle = "  ".join(cell.rjust(width) for cell, width in zip(cells[1:-1], widths[1:], strict=True))
        print(f"{head}  {middle}  {cells[-1]}", flush=True)

    exact = True
    try:
        show(HEADINGS)
        for line in _lines(paths):
            show(line)
            exact &= not any(int(count) for count in line[2:7])
    except (InputError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0 if exact else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
