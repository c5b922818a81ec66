"""Training of a mixture of experts (Mixtral, smaller), whose routing is drawn on the host.

Which tokens go to which expert decides how much memory each takes. On a phantom nothing is computed, so the router's
choice cannot be read back: here it is drawn anew for each layer and batch, uneven as routers are, and the same on a
real card.
"""

import random
from typing import Any

import torch
import transformers
from torch.nn.functional import linear, silu

from movie.workloads.batches import batches
from movie.workloads.options import Options, options, parser
from movie.workloads.report import report

EXPERTS = 8
CHOSEN = 2  # experts for each token
_SKEW = 2.0  # of the Dirichlet distribution of shares: the smaller, the more uneven


class DrawnExperts(torch.nn.Module):
    """The experts of one layer, as in Mixtral, each with the tokens that fell to it."""

    def __init__(self, config: Any, draw: random.Random, twice: bool) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.router = torch.nn.Linear(width, EXPERTS, bias=False)
        self.gate_up = torch.nn.Parameter(torch.empty(EXPERTS, 2 * inner, width))
        self.down = torch.nn.Parameter(torch.empty(EXPERTS, width, inner))
        self._draw = draw
        self._twice = twice  # each forward pass comes again, within the backward pass
        self._kept: list[float] | None = None

    def forward(self, hidden: Any) -> Any:
        tokens = hidden.reshape(-1, hidden.shape[-1])
        weights = torch.softmax(self.router(tokens).float(), dim=-1)
        result = torch.zeros_like(tokens)
        for expert, count in enumerate(self._counts(len(tokens))):
            if count == 0:
                continue
            theirs = torch.randint(0, len(tokens), (count,), device=tokens.device)
            gate, up = linear(tokens[theirs], self.gate_up[expert]).chunk(2, dim=-1)
            made = linear(silu(gate) * up, self.down[expert]) * weights[theirs, expert, None]
            result.index_add_(0, theirs, made.to(result.dtype))
        return result.reshape(hidden.shape)

    def _counts(self, tokens: int) -> list[int]:
        """How many tokens each expert gets. A pass that comes again gets what it had before."""
        shares = self._kept or [self._draw.gammavariate(_SKEW, 1.0) for _ in range(EXPERTS)]
        self._kept = shares if self._twice and self._kept is None else None
        return [min(int(CHOSEN * tokens * share / sum(shares)), tokens) for share in shares]


def model_of(chosen: Options) -> Any:
    """Mixtral with 8 layers and half the width."""
    config = transformers.MixtralConfig(
        hidden_size=2048,
        intermediate_size=7168,
        num_hidden_layers=8,
        num_attention_heads=32,
        num_key_value_heads=8,
        num_local_experts=1,  # replaced below
        num_experts_per_tok=1,
    )
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(config)
        draw = random.Random(chosen.seed)
        for layer in model.model.layers:
            layer.mlp = DrawnExperts(config, draw, chosen.recompute)
    torch.cuda.empty_cache()  # the experts that were replaced
    if chosen.recompute:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": True})
        model.enable_input_require_grads()
    return model.train()


def train(chosen: Options) -> None:
    torch.set_default_dtype(torch.bfloat16)
    model = model_of(chosen)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for tokens in batches(chosen):
        output = model(input_ids=tokens, labels=tokens)
        output.loss.backward()
        del output, tokens
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


if __name__ == "__main__":
    chosen = options(parser(__doc__, model="mixtral-small", batch=16, length=2048, iterations=8).parse_args())
    train(chosen)
    report(f"{chosen.model} {chosen.strategy}")
