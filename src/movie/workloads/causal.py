"""Supervised fine-tuning of a causal language model from Hugging Face on one card, in bfloat16."""

from typing import Any

import torch

from movie.workloads import models
from movie.workloads.batches import batches
from movie.workloads.options import Options, options, parser
from movie.workloads.report import report


def train(chosen: Options, attention: str) -> None:
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = models.build(chosen.model, attn_implementation=attention)
    model = models.prepared(model, chosen).to("cuda")
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = None if chosen.offload else torch.optim.AdamW(parameters, lr=1e-4)
    for tokens in batches(chosen):
        output = model(input_ids=tokens, labels=tokens)
        output.loss.backward()
        del output, tokens
        if optimizer is None:
            update_on_host(parameters)
        else:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)


def update_on_host(parameters: list[Any]) -> None:
    """The traffic of an optimizer whose states are on the host: each gradient leaves, and new weights come."""
    for parameter in parameters:
        parameter.grad = None
        updated = torch.empty_like(parameter)
        parameter.data.copy_(updated)


if __name__ == "__main__":
    command_line = parser(__doc__, model="opt-1.3b", batch=8)
    command_line.add_argument("--attention", choices=("sdpa", "eager"), default="sdpa")
    arguments = command_line.parse_args()
    chosen = options(arguments)
    train(chosen, arguments.attention)
    report(f"{chosen.model} {chosen.strategy}")
