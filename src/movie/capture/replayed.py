"""A trace through the real allocator of PyTorch, in a process of its own that has a card or a phantom.

    python -m movie.capture.replayed TRACE

prints, as JSON, the most bytes that were reserved and the retries. A block is freed when the recording says that its
memory could be used again. What PyTorch was set to do (PYTORCH_CUDA_ALLOC_CONF) is up to the environment.
"""

import json
import sys
from contextlib import nullcontext
from typing import Any

import torch

from movie.trace import Action, read_trace


class _Replay:
    def __init__(self) -> None:
        self._streams: dict[int, Any] = {0: torch.cuda.default_stream()}
        self._pools: dict[int, Any] = {}
        self._blocks: dict[int, int] = {}

    def alloc(self, block: int, size: int, stream: int, pool: int) -> None:
        if stream not in self._streams:
            self._streams[stream] = torch.cuda.Stream()
        with self._pool(pool):
            self._blocks[block] = torch.cuda.caching_allocator_alloc(size, 0, self._streams[stream])

    def free(self, block: int) -> None:
        torch.cuda.caching_allocator_delete(self._blocks.pop(block))

    def _pool(self, pool: int) -> Any:
        if pool == 0:
            return nullcontext()
        if pool not in self._pools:
            self._pools[pool] = torch.cuda.MemPool()
        return torch.cuda.use_mem_pool(self._pools[pool])


def main(path: str) -> int:
    """Replays a trace that begins with an empty allocator."""
    (trace,) = read_trace(path)
    if len(trace.start):
        print(f"{path}: begins in the middle of a run", file=sys.stderr)
        return 2
    torch.cuda.init()
    replay = _Replay()
    columns = (trace.action, trace.id, trace.bytes, trace.stream, trace.pool)
    for action, block, size, stream, pool in zip(*(column.tolist() for column in columns), strict=True):
        if action == Action.ALLOC:
            replay.alloc(block, size, stream, pool)
        elif action == Action.FREE_COMPLETED:
            replay.free(block)
        elif action == Action.EMPTY_CACHE:
            torch.cuda.empty_cache()
    stats = torch.cuda.memory_stats()
    print(json.dumps({"peak_reserved": stats["reserved_bytes.all.peak"], "retries": stats["num_alloc_retries"]}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
