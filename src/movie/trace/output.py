"""Files that are whole or not there."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from movie.trace.errors import TraceError


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write to. It gets its name, and replaces what had it, when the block ends without an exception.

    Until then it lies beside it under a temporary name; after an exception nothing is left. Raises TraceError where the
    file cannot be written, or the name is that of a directory or device.
    """
    with _beside(path) as (temporary, target), open(temporary, "xb") as file:
        yield file
        file.close()
        os.replace(temporary, target)


def check_writable(path: str | Path) -> None:
    """Raises the TraceError that `whole_file` would, before there is anything to write. Changes no file."""
    with _beside(path) as (temporary, _), open(temporary, "xb"):
        pass


@contextmanager
def _beside(path: str | Path) -> Iterator[tuple[Path, Path]]:
    """A temporary name, whose file is gone after the block, and the file that is meant. OSError becomes TraceError."""
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            raise TraceError(path, "", "cannot be written: is not a regular file")
        try:
            yield temporary, target
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TraceError(path, "", f"cannot be written: {reason}") from None
