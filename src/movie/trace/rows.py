"""Plain rows: four 64-bit integers each, little-endian: 1 for an allocation or 0 for a free, id, bytes, stream.

A free names its block by the id, which may come again for another block. Nothing before, between or after the rows.
"""

import numpy as np

from movie.trace.format import Format
from movie.trace.log import Log, trace_of
from movie.trace.model import LARGEST, Action, Trace
from movie.trace.source import Source

_ROW = np.dtype([("op", "<i8"), ("id", "<i8"), ("bytes", "<i8"), ("stream", "<i8")])
_ALLOC, _FREE = 1, 0


def _plausible(head: bytes) -> bool:
    """Whether all rows could be such rows, the first is an allocation, or one at least is."""
    rows = np.frombuffer(head[: len(head) - len(head) % _ROW.itemsize], dtype=_ROW)
    if not len(rows):
        return False
    if rows["op"][0] == _ALLOC:
        return bool(0 <= rows["bytes"][0] <= LARGEST)
    valid = ((rows["op"] == _ALLOC) | (rows["op"] == _FREE)) & (rows["bytes"] >= 0) & (rows["bytes"] <= LARGEST)
    return bool(valid.all() and (rows["op"] == _ALLOC).any())


def _read(source: Source) -> list[Trace]:
    whole, rest = divmod(len(source.data), _ROW.itemsize)
    if rest:
        raise source.error(f"row {whole}", f"ends after {rest} of {_ROW.itemsize} bytes")
    rows = np.frombuffer(source.data, dtype=_ROW)
    for wrong, what in (
        ((rows["op"] != _ALLOC) & (rows["op"] != _FREE), "begins with neither 1 (allocation) nor 0 (free)"),
        ((rows["bytes"] < 0) | (rows["bytes"] > LARGEST), "has a size that is not from 0 to 2**62"),
    ):
        if wrong.any():
            raise source.error(f"row {int(np.argmax(wrong))}", what)
    log = Log(
        action=np.where(rows["op"] == _ALLOC, Action.ALLOC, Action.FREE_REQUESTED).astype(np.uint8),
        key=rows["id"],
        bytes=rows["bytes"].astype(np.int64),
        stream=rows["stream"].astype(np.int64),
        address=np.zeros(whole, dtype=np.uint64),
        time_us=np.zeros(whole, dtype=np.int64),
        phase=np.full(whole, -1, dtype=np.int32),
    )
    return [trace_of(source, log, lambda row: f"row {row}", format="plain rows")]


FORMAT = Format("plain rows of four 64-bit integers", _plausible, _read)
