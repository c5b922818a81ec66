"""A small training with batches of varying length: time of an iteration, and what was reserved."""

import os
import time
from statistics import median
from typing import Any

import torch

SCALES = {"full": (1024, 16, 12, 1024, 24), "dry": (128, 4, 2, 128, 6)}  # width, heads, layers, length, iterations


class Block(torch.nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = torch.nn.LayerNorm(width)
        self.into = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.wide = torch.nn.Sequential(
            torch.nn.LayerNorm(width),
            torch.nn.Linear(width, 4 * width),
            torch.nn.GELU(),
            torch.nn.Linear(4 * width, width),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.into(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).softmax(-1)
        x = x + self.out((scores @ v).transpose(1, 2).flatten(-2))
        return x + self.wide(x)


def requests() -> list[list[int]]:
    """What was asked for, in order: bytes, negative where they were freed, and the number of the stream."""
    streams: dict[int, int] = {}
    return [
        [event["size"] * (1 if event["action"] == "alloc" else -1), streams.setdefault(event["stream"], len(streams))]
        for event in torch.cuda.memory._snapshot()["device_traces"][0]
        if event["action"] in ("alloc", "free_requested")
    ]


def main() -> dict[str, Any]:
    width, heads, layers, longest, iterations = SCALES[os.environ["MOVIE_GPU_SCALE"]]
    fraction = float(os.environ.get("MOVIE_GPU_FRACTION", "1"))
    if fraction < 1:
        torch.cuda.set_per_process_memory_fraction(fraction)
    torch.manual_seed(0)
    if os.environ.get("MOVIE_GPU_REQUESTS"):
        torch.cuda.memory._record_memory_history(context=None, max_entries=10**7)
    model = torch.nn.Sequential(
        torch.nn.Embedding(32000, width), *(Block(width, heads) for _ in range(layers)), torch.nn.Linear(width, 32000)
    ).to("cuda", torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    draw = torch.Generator().manual_seed(1)
    seconds = []
    completed = True
    try:
        for _ in range(iterations):
            begin = time.perf_counter()
            length = int(torch.randint(longest // 8, longest, (1,), generator=draw))
            tokens = torch.randint(0, 32000, (8, length), generator=draw).cuda()
            loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            torch.cuda.synchronize()
            seconds.append(time.perf_counter() - begin)
    except torch.OutOfMemoryError:
        completed = False
    stats = torch.cuda.memory_stats()
    return {
        "requests": requests() if os.environ.get("MOVIE_GPU_REQUESTS") else None,
        "completed": completed,
        "iteration_seconds": median(seconds) if seconds else None,
        "requested": stats["requested_bytes.all.peak"],
        "reserved": stats["reserved_bytes.all.peak"],
        "retries": stats["num_alloc_retries"],
        "total": torch.cuda.mem_get_info()[1],
    }
