"""Training on rollouts of uneven length (group relative policy optimization), on one card in bfloat16.

An iteration: the model answers each prompt eight times, answers end after very different numbers of tokens, and those
that have ended leave the batch. Each answer is weighed against the others to its prompt. Then it learns from all, in
micro-batches of about as many tokens each, so of few long or many short sequences, compared with a reference: the
model as it was, or, with adapters (L), the model without them.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import torch

from movie.workloads import models
from movie.workloads.batches import SHORTEST, long_tailed, tokens
from movie.workloads.options import Options, draw_of, options, parser
from movie.workloads.policy import log_probabilities, written_unevenly
from movie.workloads.report import report

GROUP = 8  # answers to a prompt
ANSWER = 338  # tokens on average, before they are cut at `--length`: movie.workloads.batches
CLIP, DIVERGENCE = 0.2, 0.04
_LONGEST = 2  # sequences of the greatest length that a micro-batch may hold


def rounds(chosen: Options) -> Iterator[tuple[int, list[int]]]:
    """For each iteration the length of its prompts, and that of each answer."""
    draw = draw_of(chosen)
    for _ in range(chosen.iterations):
        prompt = draw.randint(min(SHORTEST, chosen.length // 4), chosen.length // 4)
        most = chosen.length - prompt
        if chosen.lengths == "fix":
            yield prompt, [most] * chosen.batch
        else:
            yield prompt, [long_tailed(draw, most, ANSWER) for _ in range(chosen.batch)]


def micro_batches(written: list[Any], budget: int) -> list[Any]:
    """Batches of at most `budget` tokens, or of one sequence, from batches of any size."""
    parts = []
    for batch in written:
        size = max(budget // batch.shape[1], 1)
        parts += [batch[start : start + size] for start in range(0, len(batch), size)]
    return parts


def reference_of(model: Any, chosen: Options) -> tuple[Any, Any]:
    """Who says how probable answers were at first, and the context in which to ask."""
    if chosen.adapters:
        return model, model.disable_adapter
    with torch.device("cuda"):
        return models.build(chosen.model).eval().requires_grad_(False), nullcontext


def train(chosen: Options) -> None:
    torch.set_default_dtype(torch.bfloat16)
    torch.manual_seed(chosen.seed)
    with torch.device("cuda"):
        model = models.prepared(models.build(chosen.model), chosen)
    reference, as_it_was = reference_of(model, chosen)
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], lr=1e-6)
    for prompt, answers in rounds(chosen):
        model.eval()
        prompts = tokens(-(-chosen.batch // GROUP), prompt).repeat_interleave(GROUP, dim=0)[: chosen.batch]
        with torch.no_grad():
            parts = micro_batches(written_unevenly(model, prompts, answers), _LONGEST * chosen.length)
            before = [log_probabilities(model, part) for part in parts]
            with as_it_was():
                first = [log_probabilities(reference, part) for part in parts]
        model.train()
        for part, old, start in zip(parts, before, first, strict=True):
            now = log_probabilities(model, part)
            advantages = torch.randn(len(part), 1, device="cuda")  # rewards come from outside
            ratio = (now - old).exp()
            gain = torch.min(advantages * ratio, advantages * ratio.clamp(1 - CLIP, 1 + CLIP))
            divergence = (start - now).exp() - (start - now) - 1
            ((DIVERGENCE * divergence - gain)[:, prompt - 1 :].mean() / len(parts)).backward()
            del now, ratio, gain, divergence
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        del prompts, parts, before, first, part, old, start


if __name__ == "__main__":
    chosen = options(parser(__doc__, model="qwen2-1.5b", batch=32, length=1024).parse_args())
    train(chosen)
    report(f"rollouts {chosen.model} {chosen.strategy}")
