"""The environment in which a child process finds a phantom card where it looks for a real one."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from movie.phantom.library import library_path
from movie.phantom.settings import PREFIX, PhantomSettings

# The names under which programs load the driver and its management library. Links to one file: the loader finds that
# it has it already, so whoever asks for the driver gets the preloaded phantom.
_LINKS = ("libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1")


@contextmanager
def phantom_environment(settings: PhantomSettings, base: Mapping[str, str] | None = None) -> Iterator[dict[str, str]]:
    """`base` (default: this process's environment) with the phantom in it, for as long as the block lasts.

    Raises InputError where the installation has no phantom, or the card no room for a context.
    """
    variables = settings.check().variables()
    library = library_path()
    environment = without_phantom(os.environ if base is None else base)
    with TemporaryDirectory(prefix="movie-phantom-") as folder:
        for name in _LINKS:
            Path(folder, name).symlink_to(library)
        prepend(environment, "LD_PRELOAD", str(library))
        prepend(environment, "LD_LIBRARY_PATH", folder)
        environment["TRITON_LIBCUDA_PATH"] = folder
        environment.update(variables)
        yield environment


def without_phantom(base: Mapping[str, str]) -> dict[str, str]:
    """A copy without the settings of another phantom. One that a script sets for itself in between is lost, too."""
    return {key: value for key, value in base.items() if not key.startswith(PREFIX)}


def prepend(environment: dict[str, str], name: str, item: str) -> None:
    """Puts a path before those that a variable lists already."""
    before = environment.get(name)
    environment[name] = f"{item}{os.pathsep}{before}" if before else item
