"""Reinforcement learning from human feedback, its third step, as DeepSpeed-Chat takes it, on one card in bfloat16.

Four models are on the card: an actor that writes and is trained, the actor as it was (the reference), a reward model,
and a critic that is trained to foretell rewards. An iteration: the actor continues prompts, with a cache of keys and
values that grows token by token; all four judge what it wrote; then one step of proximal policy optimization for the
actor and one for the critic. Half of `--length` are the prompt; with `--lengths var` prompts and answers vary from
batch to batch.
"""

from collections.abc import Iterator
from typing import Any

import torch

from movie.workloads import models
from movie.workloads.batches import tokens
from movie.workloads.causal import update_on_host
from movie.workloads.options import Options, draw_of, options, parser
from movie.workloads.policy import log_probabilities, written
from movie.workloads.report import report

CLIP, DISCOUNT, SMOOTHING, DIVERGENCE = 0.2, 1.0, 0.95, 0.1
_SHORTEST = 32  # tokens of a prompt, and of an answer


class Judge(torch.nn.Module):
    """A language model with a number for each token: a critic, or a reward model."""

    def __init__(self, chosen: Options, trained: bool) -> None:
        super().__init__()
        body = models.build_body(judge_of(chosen.model))
        width = getattr(body.config, "word_embed_proj_dim", body.config.hidden_size)
        self.body = models.prepared(body, chosen) if trained else body.eval()
        self.head = torch.nn.Linear(width, 1, bias=False, dtype=body.dtype)
        self.requires_grad_(trained)

    def forward(self, sequences: Any) -> Any:
        return self.head(self.body(input_ids=sequences, use_cache=False).last_hidden_state).squeeze(-1)


class Learner:
    """A model that is trained, and its optimizer."""

    def __init__(self, model: Any, chosen: Options) -> None:
        self.model = model
        self._parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._optimizer = None if chosen.offload else torch.optim.AdamW(self._parameters, lr=1e-5)

    def learn(self, loss: Any) -> None:
        loss.backward()
        if self._optimizer is None:
            update_on_host(self._parameters)
        else:
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)


def judge_of(actor: str) -> str:
    """The model below critic and reward model: as DeepSpeed-Chat has it, a small OPT beside a large one."""
    return "opt-350m" if actor.startswith("opt-") else actor


def shapes(chosen: Options) -> Iterator[tuple[int, int]]:
    """Tokens of the prompts and of the answers, for each iteration."""
    draw, half = draw_of(chosen), chosen.length // 2
    for _ in range(chosen.iterations):
        if chosen.lengths == "fix":
            yield half, half
        else:
            yield draw.randint(min(_SHORTEST, half), half), draw.randint(min(_SHORTEST, half), half)


def advantages_of(values: Any, rewards: Any, start: int) -> tuple[Any, Any]:
    """Generalized advantages of the tokens from `start` on, and the returns that the critic is to foretell."""
    last, kept = torch.zeros_like(values[:, 0]), []
    length = rewards.shape[1]
    for place in reversed(range(start, length)):
        following = values[:, place + 1] if place < length - 1 else torch.zeros_like(last)
        last = rewards[:, place] + DISCOUNT * following - values[:, place] + DISCOUNT * SMOOTHING * last
        kept.append(last)
    advantages = torch.stack(kept[::-1], dim=1)
    return advantages, advantages + values[:, start:]


def judged(actor: Any, reference: Any, critic: Any, reward: Any, sequences: Any) -> tuple[Any, Any, Any]:
    """Log probabilities by the actor, values by the critic, and rewards; each (batch, length - 1)."""
    ours, before = log_probabilities(actor, sequences), log_probabilities(reference, sequences)
    score, values = reward(sequences)[:, -1], critic(sequences)[:, :-1]
    rewards = -DIVERGENCE * (ours - before)
    rewards[:, -1] += score.clamp(-5, 5)
    return ours, values, rewards


def train(chosen: Options) -> None:
    torch.set_default_dtype(torch.bfloat16)
    torch.manual_seed(chosen.seed)
    with torch.device("cuda"):
        actor = Learner(models.prepared(models.build(chosen.model), chosen), chosen)
        reference = models.build(chosen.model).eval().requires_grad_(False)
        critic = Learner(Judge(chosen, trained=True), chosen)
        reward = Judge(chosen, trained=False)
    iterate(chosen, actor, critic, reference, reward)


def iterate(chosen: Options, actor: Any, critic: Any, reference: Any, reward: Any) -> None:
    """All iterations. Actor and critic have a `model` and `learn`; reference and reward model are models."""
    for prompt, answer in shapes(chosen):
        actor.model.eval()
        critic.model.eval()
        with torch.no_grad():
            sequences = written(actor.model, tokens(chosen.batch, prompt), answer)
            ours, values, rewards = judged(actor.model, reference, critic.model, reward, sequences)
        actor.model.train()
        critic.model.train()
        start = prompt - 1
        advantages, returns = advantages_of(values, rewards, start)
        ratio = (log_probabilities(actor.model, sequences) - ours)[:, start:].exp()
        clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
        actor.learn(-torch.min(advantages * ratio, advantages * clipped).mean())
        del ratio, clipped
        now = critic.model(sequences)[:, :-1][:, start:]
        near = now.clamp(values[:, start:] - CLIP, values[:, start:] + CLIP)
        critic.learn(torch.max((now - returns) ** 2, (near - returns) ** 2).mean() / 2)
        del now, near, sequences, ours, values, rewards, advantages, returns


if __name__ == "__main__":
    chosen = options(parser(__doc__, model="opt-1.3b", batch=16, length=512).parse_args())
    train(chosen)
    report(f"RLHF {chosen.model} {chosen.strategy}")
