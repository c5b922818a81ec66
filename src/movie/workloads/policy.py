"""What reinforcement learning asks of a language model: to write, and to say how probable it is what was written.

Gradients are the caller's matter.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import log_softmax
from transformers import DynamicCache

_COMPACTED = 16  # tokens after which sequences that have ended leave the batch


def written(model: Any, prompts: Any, new_tokens: int) -> Any:
    """The prompts, (batch, length), continued by `new_tokens` each: the most probable ones, with a growing cache."""
    return written_unevenly(model, prompts, [new_tokens] * len(prompts))[0]


def written_unevenly(model: Any, prompts: Any, new_tokens: Sequence[int]) -> list[Any]:
    """The prompts, (batch, length), each continued by as many tokens as `new_tokens` says.

    Where a sequence ends is given, not read from what is written. Those that have ended leave the batch, and the cache,
    every few tokens. Returns batches whose sequences ended together, padded to the longest, in the order of their ends.
    """
    left = sorted(range(len(prompts)), key=lambda number: new_tokens[number])
    sequences, cache, step = prompts[_index(left)], DynamicCache(), prompts[_index(left)]
    ended = []
    for count in range(1, max(new_tokens) + 1):
        logits = model(input_ids=step, past_key_values=cache, use_cache=True, logits_to_keep=1).logits
        step = logits[:, -1:].argmax(-1)
        sequences = torch.cat((sequences, step), dim=1)
        gone = sum(new_tokens[number] <= count for number in left)
        if gone == len(left) or (gone and count % _COMPACTED == 0):
            ended.append(sequences[:gone])
            left = left[gone:]
            if left:
                stay = _index(range(gone, len(sequences)))
                cache.batch_select_indices(stay)
                sequences, step = sequences[stay], step[stay]
    return ended


def log_probabilities(model: Any, sequences: Any) -> Any:
    """Of each token but the first, given those before it: (batch, length - 1)."""
    logits = model(input_ids=sequences, use_cache=False).logits
    spread = log_softmax(logits[:, :-1], dim=-1)
    return spread.gather(-1, sequences[:, 1:, None]).squeeze(-1)


def _index(numbers: Sequence[int]) -> Any:
    return torch.tensor(list(numbers), device="cuda")
