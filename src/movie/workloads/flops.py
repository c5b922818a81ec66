"""How many floating-point operations a training iteration takes: counted by PyTorch on a model without memory.

    python -m movie.workloads.flops --model opt-1.3b --strategy R --batch 8 --lengths var --length 2048

takes the options of the other workloads of causal language models, and prints the operations of one iteration, forward
and backward, averaged over the lengths that a run with this seed draws. Products of matrices are counted, a
multiplication with its addition as two, and with them what is computed twice (strategy R) or not at all (the gradients
of frozen weights, L); attention is counted in full, also where a mask hides half of it. Needs no card.
"""

from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from movie.workloads import models
from movie.workloads.batches import lengths
from movie.workloads.options import Options, options, parser


def of_iteration(chosen: Options) -> float:
    """The mean over the lengths of the run."""
    model = built(chosen)
    drawn = list(lengths(chosen))
    # Attention grows with the square of the length and all else with the length itself, so three lengths tell of all.
    counted = sorted({*drawn} if len({*drawn}) <= 3 else {min(drawn), (min(drawn) + max(drawn)) // 2, max(drawn)})
    points = [(length, of_batch(model, chosen.batch, length)) for length in counted]
    return sum(through(points, length) for length in drawn) / len(drawn)


def built(chosen: Options) -> Any:
    """The model without memory.

    Its attention is written out (`eager`): the same products, and Transformers then asks no mask for its values, of
    which there are none.
    """
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("meta"):
        model = models.build(chosen.model, attn_implementation="eager")
    return models.prepared(model, chosen).to("meta")


def of_batch(model: Any, batch: int, length: int) -> int:
    """Forward and backward pass of one batch."""
    tokens = torch.zeros(batch, length, dtype=torch.int64, device="meta")
    with FlopCounterMode(display=False) as counter:
        # Without a mask it would look for packed sequences by value.
        model(input_ids=tokens, labels=tokens, attention_mask=torch.ones_like(tokens)).loss.backward()
    return counter.get_total_flops()


def through(points: list[tuple[int, int]], place: int) -> float:
    """The value at `place` of the polynomial through the points (Lagrange's form)."""
    total = 0.0
    for at, value in points:
        term = float(value)
        for other, _ in points:
            if other != at:
                term *= (place - other) / (at - other)
        total += term
    return total


if __name__ == "__main__":
    print(round(of_iteration(options(parser(__doc__, model="opt-1.3b", batch=8).parse_args()))))
