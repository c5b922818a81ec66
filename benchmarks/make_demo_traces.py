"""Makes the two recordings that `movie demo` replays, from the snapshots they were recorded as.

    python benchmarks/make_demo_traces.py [FOLDER]

FOLDER has the snapshots `NAME.pickle.gz`; without it, `recordings` in the folder that MOVIE_DATA names.
"""

import os
import sys
from pathlib import Path

from movie.demonstration import recordings
from movie.trace import read_trace
from movie.trace.parquet import write_parquet

_LARGEST = 10**6  # bytes of a file that ships with the package


def main() -> int:
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
    else:
        folder = Path(os.environ.get("MOVIE_DATA", Path(__file__).parents[2] / "shared" / "data")) / "recordings"
    for target in recordings():
        (trace,) = read_trace(folder / f"{target.stem}.pickle.gz")
        target.parent.mkdir(exist_ok=True)
        write_parquet(trace, target, times=False)
        size = target.stat().st_size
        print(f"{target.name}: {size:,} bytes, {len(trace):,} rows")
        if size >= _LARGEST:
            print(f"{target.name} is larger than {_LARGEST:,} bytes", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
