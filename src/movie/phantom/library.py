"""Where the library of the phantom is."""

from pathlib import Path

import movie
from movie.errors import InputError

NAME = "libmovie_phantom.so"


def library_path() -> Path:
    """The library that is preloaded. Raises InputError where this installation has none."""
    for folder in movie.__path__:  # a checkout in use has its native parts elsewhere than its Python sources
        path = Path(folder) / "phantom" / NAME
        if path.is_file():
            return path.resolve()
    raise InputError(f"this installation has no {NAME}: the phantom card is built for Linux on x86-64")
