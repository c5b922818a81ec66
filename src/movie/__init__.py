"""MOVie: a GPU memory allocator that does not fragment, and tools that show where the memory went."""

from movie._version import __version__
from movie.torch import Config, EnableError, enable, enabled

__all__ = ["Config", "EnableError", "__version__", "enable", "enabled"]
