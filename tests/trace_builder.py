"""Short traces by hand, for tests."""

from collections.abc import Sequence

import numpy as np

from movie.trace.model import Action, Segments, StartBlocks, Trace


class TraceBuilder:
    """Rows one after the other; blocks are numbered as they are allocated, start blocks first."""

    def __init__(self, *, completions_recorded: bool = True) -> None:
        self.completions_recorded = completions_recorded
        self._rows: list[tuple[int, int, int, int, int, int]] = []
        self._blocks: list[tuple[int, int, int, int]] = []  # bytes, stream, pool, address
        self._start: list[tuple[int, int, int, int, int, bool]] = []
        self._segments: list[tuple[int, int, int, int, bool]] = []

    def segment(self, address: int, size: int, stream: int = 0, pool: int = 0) -> None:
        """Held before the first row."""
        self._segments.append((address, size, stream, pool, size == 2 << 20))

    def start(
        self, size: int, stream: int = 0, pool: int = 0, *, address: int = 0, block: int = 0, pending: bool = False
    ) -> int:
        """A block from before the first row: `size` bytes asked for, `block` bytes large."""
        assert not self._rows, "start blocks come first"
        self._blocks.append((size, stream, pool, address))
        self._start.append((size, block or size, address, stream, pool, pending))
        return len(self._blocks) - 1

    def alloc(self, size: int, stream: int = 0, pool: int = 0, address: int = 0) -> int:
        block = len(self._blocks)
        self._blocks.append((size, stream, pool, address))
        self._of_block(Action.ALLOC, block)
        return block

    def free(self, block: int) -> None:
        """Both steps at once."""
        self.free_requested(block)
        self.free_completed(block)

    def free_requested(self, block: int) -> None:
        self._of_block(Action.FREE_REQUESTED, block)

    def free_completed(self, block: int) -> None:
        self._of_block(Action.FREE_COMPLETED, block)

    def use(self, block: int, stream: int) -> None:
        size, _, pool, address = self._blocks[block]
        self._rows.append((Action.USE, block, size, stream, pool, address))

    def row(self, action: Action, size: int = 0, pool: int = 0, address: int = 0, stream: int = 0) -> None:
        """A row that is of no block."""
        self._rows.append((action, -1, size, stream, pool, address))

    def _of_block(self, action: Action, block: int) -> None:
        self._rows.append((action, block, *self._blocks[block]))

    def build(self) -> Trace:
        columns = list(zip(*self._rows, strict=True)) or [()] * 6
        pools = 1 + max([0, *columns[4], *(block[2] for block in self._blocks), *(row[3] for row in self._segments)])
        start = list(zip(*self._start, strict=True)) or [()] * 6
        segments = list(zip(*self._segments, strict=True)) or [()] * 5
        return Trace(
            action=_array(columns[0], np.uint8),
            id=_array(columns[1], np.int64),
            bytes=_array(columns[2], np.int64),
            stream=_array(columns[3], np.int64),
            pool=_array(columns[4], np.int64),
            address=_array(columns[5], np.uint64),
            time_us=np.zeros(len(self._rows), np.int64),
            phase=np.array([0 if row[0] == Action.MARK else -1 for row in self._rows], np.int32),
            phases=("step",) if any(row[0] == Action.MARK for row in self._rows) else (),
            start=StartBlocks(
                bytes=_array(start[0], np.int64),
                size=_array(start[1], np.int64),
                address=_array(start[2], np.uint64),
                stream=_array(start[3], np.int64),
                pool=_array(start[4], np.int64),
                pending=_array(start[5], np.bool_),
            ),
            segments=Segments(
                address=_array(segments[0], np.uint64),
                size=_array(segments[1], np.int64),
                stream=_array(segments[2], np.int64),
                pool=_array(segments[3], np.int64),
                small=_array(segments[4], np.bool_),
                expandable=np.zeros(len(self._segments), np.bool_),
            ),
            pools=("default", *(f"pool {i}" for i in range(1, pools))),
            completions_recorded=self.completions_recorded,
        ).check()


def _array(values: Sequence[object], dtype: type[np.generic]) -> np.ndarray:
    return np.array(values, dtype=dtype)
