"""Batches of random tokens."""

import random
from collections.abc import Iterator
from typing import Any

import torch

from movie.workloads.options import Options

SHORTEST = 128  # tokens, where lengths vary
_TOKENS = 30000  # below the vocabulary of every model here


def lengths(options: Options) -> Iterator[int]:
    """The length of each batch, in tokens."""
    draw = random.Random(options.seed)
    for _ in range(options.iterations):
        yield draw.randint(SHORTEST, options.length) if options.lengths == "var" else options.length


def batches(options: Options) -> Iterator[Any]:
    """Tokens of shape (batch, length), int64, on the card."""
    torch.manual_seed(options.seed)
    for length in lengths(options):
        yield torch.randint(0, _TOKENS, (options.batch, length), device="cuda")
