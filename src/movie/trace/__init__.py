"""Traces of GPU memory: the model, one reader a format, and writers."""

from movie.trace.errors import TraceError
from movie.trace.model import Action, Segments, StartBlocks, Trace

__all__ = ["Action", "Segments", "StartBlocks", "Trace", "TraceError"]
