"""Has MOVie take the place of torch's allocator as soon as torch is there."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any

from .after_import import after_import


def arrange() -> None:
    after_import("torch", _enable)


def _enable(torch: Any) -> None:
    try:
        import movie  # noqa: PLC0415
    except ImportError as error:
        sys.exit(f"movie: MOVie cannot be imported in {sys.prefix} ({error}): install movie-alloc there, beside torch")
    from movie.errors import InputError  # noqa: PLC0415

    try:
        movie.enable()
    except (movie.EnableError, InputError) as error:
        sys.exit(f"movie: {error}")
    finally:
        _tell()


def _tell() -> None:
    """Whoever waits for the program learns that MOVie got into this process, also where it could only say why not."""
    folder = os.environ.get("MOVIE_RUN_FOLDER")
    if folder:
        with suppress(OSError):  # it has gone: whoever waited does no longer
            open(os.path.join(folder, str(os.getpid())), "wb").close()
