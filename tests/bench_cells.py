"""Cells for tests of the bench: captured already, so that nothing needs to be run, or nearly as small as can be."""

from dataclasses import replace
from pathlib import Path

from trace_builder import TraceBuilder

from movie.bench.cells import Cell
from movie.bench.work import Place, place_of
from movie.trace import write_trace

MIB = 1 << 20
REAL_RESERVED = {"native": 192 * MIB, "expandable": 160 * MIB}
REQUESTED = 144 * MIB
# Nobody counts the operations of this framework, so its figures come from its captures alone.
CAPTURED = Cell("no-model", "compile", "N", 1, 2, 64, "fix", 3)
SMALL = Cell("mobilellm-125m", "hf", "N", 1, 1, 128, "fix", 2)


def captured(work: Path, cell: Cell = CAPTURED, scale: int = 1) -> Place:
    """The place of a cell, with captures of a run that leaves a hole of 64 MiB below a request of 80 MiB.

    `scale`: times all of these.
    """
    place = place_of(work, cell)
    place.folder.mkdir(parents=True)
    for allocator, reserved in REAL_RESERVED.items():
        builder = TraceBuilder()
        builder.alloc(scale * 32 * MIB)
        hole = builder.alloc(scale * 64 * MIB)
        builder.alloc(scale * 32 * MIB)
        builder.free(hole)
        builder.free(builder.alloc(scale * 80 * MIB))
        trace = replace(builder.build(), header={"peak reserved": str(reserved), "retries": "0"})
        write_trace(trace, place.capture(allocator))
    return place
