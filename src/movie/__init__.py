"""MOVie: a GPU memory allocator that does not fragment, and tools that show where the memory went."""

from movie._version import __version__

__all__ = ["__version__"]
