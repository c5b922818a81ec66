"""How fast replays are, and what they say: the recordings that ship, under every allocator of the catalogue.

python benchmarks/recordings.py [TRACE...]
"""

import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from movie.allocators import known_allocators
from movie.demonstration import recordings
from movie.evaluate.columns import columns_of
from movie.evaluate.replay import replay
from movie.sizes import format_size
from movie.trace import read_trace


def main() -> int:
    paths = [Path(argument) for argument in sys.argv[1:]] or recordings()
    table = Table("trace", "allocator", "rows", "reserved", "driver s", "ns/event", "ns/event watched")
    for path in paths:
        begin = time.perf_counter()
        traces = read_trace(path)
        print(f"{path.name}: read in {time.perf_counter() - begin:.2f} s", file=sys.stderr)
        for trace in traces:
            columns = columns_of(trace)
            for allocator in known_allocators():
                plain, watched = (replay(trace, allocator, validate=on, columns=columns) for on in (False, True))
                table.add_row(
                    path.name.removesuffix(".gz").removesuffix(path.suffix),
                    allocator,
                    f"{len(trace):,}",
                    format_size(plain.peak_reserved),
                    f"{plain.driver_seconds:.3f}",
                    f"{plain.host_ns_per_event:.0f}",
                    f"{watched.host_ns_per_event:.0f}",
                )
    Console(width=max(Console().width, 100)).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
