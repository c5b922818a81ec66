"""Output files that are whole or not there."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from movie.errors import InputError


def write_text(path: Path, text: str) -> None:
    """Writes the file under a temporary name beside it, then moves it into place. Raises InputError if that fails."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)  # mkstemp makes files for the owner alone
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
