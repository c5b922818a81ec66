"""Training that is interrupted by evaluation: every fifth iteration, a few larger batches without gradients.

As trainers do it, logits of the whole evaluation are kept on the card until its end, here those of the last token of
each sequence, and the losses of all.
"""

from typing import Any

import torch

from movie.workloads import models
from movie.workloads.batches import length_of, tokens
from movie.workloads.options import Options, draw_of, options, parser
from movie.workloads.report import report

EVERY = 5  # iterations
BATCHES = 4  # of an evaluation
LARGER = 4  # times: a batch of an evaluation


def train(chosen: Options) -> None:
    torch.set_default_dtype(torch.bfloat16)
    torch.manual_seed(chosen.seed)
    with torch.device("cuda"):
        model = models.build(chosen.model)
    model = models.prepared(model, chosen)
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], lr=1e-4)
    draw = draw_of(chosen)
    for number in range(1, chosen.iterations + 1):
        batch = tokens(chosen.batch, length_of(chosen, draw))
        model(input_ids=batch, labels=batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        del batch
        if number % EVERY == 0:
            with torch.no_grad():
                evaluate(model, [length_of(chosen, draw) for _ in range(BATCHES)], LARGER * chosen.batch)


def evaluate(model: Any, lengths: list[int], batch: int) -> tuple[float, Any]:
    """The mean loss over a batch of each length, and the last logits of all sequences."""
    model.eval()
    losses, logits = torch.zeros(0, device="cuda"), None
    for length in lengths:
        given = tokens(batch, length)
        output = model(input_ids=given, labels=given, use_cache=False)
        last = output.logits[:, -1].float()
        losses = torch.cat((losses, output.loss.float().repeat(batch)))
        logits = last if logits is None else torch.cat((logits, last))
        del output
    model.train()
    return float(losses.mean()), logits


if __name__ == "__main__":
    chosen = options(parser(__doc__, model="opt-1.3b", batch=4, length=2048, iterations=15).parse_args())
    train(chosen)
    report(f"{chosen.model} {chosen.strategy}, evaluated")
