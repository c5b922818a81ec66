"""Training on packed batches, on one card in bfloat16: sequences of very different lengths in one row, without padding.

Sequences are packed into rows of at most `--length` tokens, first fit; a batch is as many rows, one after another. Each
sequence attends to itself alone, so attention works on pieces of many sizes; all else on the whole row.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.nn.functional import cross_entropy, scaled_dot_product_attention
from transformers import AttentionInterface

from movie.workloads import models
from movie.workloads.batches import long_tailed, tokens
from movie.workloads.options import Options, draw_of, options, parser
from movie.workloads.report import report

_borders: list[int] = []  # lengths of the sequences in the row that is being trained on


def by_sequence(module: Any, query: Any, key: Any, value: Any, mask: Any, **more: Any) -> tuple[Any, None]:
    """Attention of (1, heads, tokens, width), for each sequence by itself."""
    many = query.shape[1] // key.shape[1]
    pieces = [
        scaled_dot_product_attention(
            ours, theirs.repeat_interleave(many, dim=1), values.repeat_interleave(many, dim=1), is_causal=True
        )
        for ours, theirs, values in zip(*(part.split(_borders, dim=2) for part in (query, key, value)), strict=True)
    ]
    return torch.cat(pieces, dim=2).transpose(1, 2), None


def rows(chosen: Options, draw: random.Random) -> Iterator[Sequence[int]]:
    """The lengths of the sequences of each row of one batch."""
    waiting = [long_tailed(draw, chosen.length) for _ in range(chosen.batch * max(chosen.length // 256, 1))]
    packed: list[list[int]] = [[] for _ in range(chosen.batch)]
    for length in waiting:
        for row in packed:
            if sum(row) + length <= chosen.length:
                row.append(length)
                break
    return (row for row in packed if row)


def train(chosen: Options) -> None:
    AttentionInterface.register("by_sequence", by_sequence)
    torch.set_default_dtype(torch.bfloat16)
    torch.manual_seed(chosen.seed)
    with torch.device("cuda"):
        model = models.build(chosen.model, attn_implementation="by_sequence")
    model = models.prepared(model, chosen)
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], lr=1e-4)
    draw = draw_of(chosen)
    for _ in range(chosen.iterations):
        for row in rows(chosen, draw):
            _borders[:] = row
            batch = tokens(1, sum(row))
            places = torch.cat([torch.arange(length) for length in row])[None].to("cuda")
            logits = model(input_ids=batch, position_ids=places, use_cache=False).logits
            cross_entropy(logits[0, :-1].float(), batch[0, 1:]).backward()
            del logits, batch, places
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


if __name__ == "__main__":
    chosen = options(parser(__doc__, model="llama3.2-1b", batch=2, length=8192).parse_args())
    train(chosen)
    report(f"{chosen.model} {chosen.strategy}, packed")
