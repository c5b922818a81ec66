"""Training with accumulated gradients and in mixed precision, on one card.

Weights are float32 and computation is bfloat16 (autocast), four micro-batches, each of its own length, make an
optimizer step, and gradients are clipped by their norm.
"""

from typing import Any

import torch

from movie.workloads import models
from movie.workloads.batches import length_of, tokens
from movie.workloads.options import Options, draw_of, options, parser
from movie.workloads.report import report

MICRO_BATCHES = 4


def train(chosen: Options) -> None:
    torch.manual_seed(chosen.seed)
    with torch.device("cuda"):
        model = models.build(chosen.model)
    model = models.prepared(model, chosen)
    parameters: list[Any] = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4)
    draw = draw_of(chosen)
    for _ in range(chosen.iterations):
        for _ in range(MICRO_BATCHES):
            batch = tokens(chosen.batch, length_of(chosen, draw))
            with torch.autocast("cuda", torch.bfloat16):
                loss = model(input_ids=batch, labels=batch).loss / MICRO_BATCHES
            loss.backward()
            del loss, batch
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


if __name__ == "__main__":
    chosen = options(parser(__doc__, model="tinyllama-1.1b", batch=2, length=2048).parse_args())
    train(chosen)
    report(f"{chosen.model} {chosen.strategy} in micro-batches")
