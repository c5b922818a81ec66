"""Traces of GPU memory: the model, one reader a format, and writers."""

from movie.trace.errors import TraceError
from movie.trace.model import Action, Segments, StartBlocks, Trace
from movie.trace.open import read_trace, write_trace
from movie.trace.source import Limits

__all__ = ["Action", "Limits", "Segments", "StartBlocks", "Trace", "TraceError", "read_trace", "write_trace"]
