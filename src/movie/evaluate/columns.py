"""A trace's columns, as the native core reads them."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from movie import _core
from movie.trace.model import Trace

_Scalar = TypeVar("_Scalar", bound=np.generic)


def columns_of(trace: Trace) -> _core.TraceColumns:
    """The trace for the native core, which keeps the arrays and copies none.

    Raises TypeError for columns of other types than the model's, ValueError for rows that contradict each other.
    """
    columns = _core.TraceColumns(
        action=_plain(trace.action),
        id=_plain(trace.id),
        bytes=_plain(trace.bytes),
        stream=_plain(trace.stream),
        pool=_plain(trace.pool),
        address=_plain(trace.address),
        start_bytes=_plain(trace.start.bytes),
        start_stream=_plain(trace.start.stream),
        start_pool=_plain(trace.start.pool),
        start_pending=_plain(trace.start.pending),
        ids=trace.ids,
        completions_recorded=trace.completions_recorded,
    )
    columns.check()
    return columns


def _plain(column: NDArray[_Scalar]) -> NDArray[_Scalar]:
    return np.ascontiguousarray(column)
