"""A training loop that survives running out of memory, for tests: batches of varying length, on a card that they fill.

Prints, as JSON: steps done, steps lost to an out-of-memory, and what MOVie and the phantom say in the end.
"""

import ctypes
import json
import os
import random
import sys

import torch

import movie


def model() -> torch.nn.Module:
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
    return torch.nn.Sequential(torch.nn.Embedding(8000, 512), torch.nn.TransformerEncoder(layer, 4)).cuda()


def main() -> None:
    steps = int(sys.argv[1])
    if os.environ.get("MOVIE_ENABLE") == "yes":
        movie.enable()
    # The fast path of inference and cuDNN's attention are beside the point.
    torch.backends.mha.set_fastpath_enabled(False)
    draw = random.Random(1)
    network = model()
    optimizer = torch.optim.AdamW(network.parameters())
    side = torch.cuda.Stream()
    done = lost = 0
    while done < steps and lost < 10 * steps:
        try:
            tokens = torch.randint(0, 8000, (8, draw.randint(64, 1024)), device="cuda")
            output = network(tokens)
            with torch.cuda.stream(side):
                copied = output.detach().float()
                output.record_stream(side)
            output.sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            del tokens, output, copied
            done += 1
        except torch.OutOfMemoryError:
            lost += 1
            tokens = output = copied = None
            optimizer.zero_grad()
    torch.cuda.synchronize()
    snapshot = torch.cuda.memory._snapshot()
    phantom = ctypes.CDLL(None)
    phantom.movie_phantom_violations.restype = ctypes.c_uint64
    core = movie._core.torch
    print(
        json.dumps(
            {
                "done": done,
                "lost": lost,
                "violations": phantom.movie_phantom_violations(),
                "reserved": torch.cuda.memory_reserved(),
                "in_segments": sum(segment["total_size"] for segment in snapshot["segments"]),
                "allocated": torch.cuda.memory_allocated(),
                "in_blocks": sum(segment["allocated_size"] for segment in snapshot["segments"]),
                "ledger": core.account(0).reserved,
                "views": core.views(0),
                "retries": torch.cuda.memory_stats()["num_alloc_retries"],
                "last_problem": core.last_problem(0),
            }
        )
    )


if __name__ == "__main__":
    main()
