"""Batches of random tokens, and how long sequences are."""

import math
import random
from collections.abc import Iterator
from typing import Any

import torch

from movie.workloads.options import Options, draw_of

SHORTEST = 128  # tokens, where lengths vary evenly
TOKENS = 30000  # below the vocabulary of every model here
# Sequences of conversations. ShareGPT's have 161 tokens of prompt and 338 of answer on average (Kwon et al., "Efficient
# Memory Management for Large Language Model Serving with PagedAttention", SOSP 2023, figure 11). That the logarithm is
# normal, with a deviation of 1, is our assumption: its median is then 303 tokens, and one in a hundred has 3,100.
MEAN = 161 + 338
DEVIATION = 1.0
LEAST = 16


def long_tailed(draw: random.Random, longest: int, mean: float = MEAN) -> int:
    """Tokens of one sequence: log-normal around `mean`, and no more than `longest`."""
    drawn = draw.lognormvariate(math.log(mean) - DEVIATION**2 / 2, DEVIATION)
    return max(min(round(drawn), longest), min(LEAST, longest))


def lengths(options: Options) -> Iterator[int]:
    """The length of each batch, in tokens."""
    draw = draw_of(options)
    for _ in range(options.iterations):
        yield length_of(options, draw)


def length_of(options: Options, draw: random.Random) -> int:
    """The length of one batch, in tokens; with `tail` its sequences are padded to the longest."""
    if options.lengths == "tail":
        return max(long_tailed(draw, options.length) for _ in range(options.batch))
    if options.lengths == "var":
        return draw.randint(min(SHORTEST, options.length), options.length)
    return options.length


def batches(options: Options) -> Iterator[Any]:
    """Tokens of shape (batch, length), int64, on the card."""
    torch.manual_seed(options.seed)
    for length in lengths(options):
        yield tokens(options.batch, length)


def tokens(batch: int, length: int) -> Any:
    """Random ones of shape (batch, length), int64, on the card."""
    return torch.randint(0, TOKENS, (batch, length), device="cuda")
