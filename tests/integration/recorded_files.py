"""The recorded traces as parameters of tests, one a file, so that they run side by side."""

import os
from pathlib import Path

_DATA = Path(os.environ.get("MOVIE_DATA", Path(__file__).parents[3] / "shared" / "data"))


def names(*patterns: str) -> list[str]:
    """The files in the data folder that match, as paths from it; where there are none, one that stands for them.

    A test takes the `data_dir` fixture beside the name, so that without data it is skipped, or fails, as that says.
    """
    found = sorted(str(path.relative_to(_DATA)) for pattern in patterns for path in _DATA.glob(pattern))
    return found or ["no recorded traces"]
