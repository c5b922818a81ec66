"""Fully sharded training (FSDP2, `fully_shard`) of a language model.

    torchrun --nproc-per-node 8 -m movie.workloads.fsdp2 --strategy R

Parameters in float32, computation in bfloat16, gradients reduced in float32.
"""

from typing import Any

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from movie.workloads import models, ranks
from movie.workloads.batches import batches
from movie.workloads.options import Options, options, parser
from movie.workloads.report import report

VOCABULARY = 50304  # of the OPT models, rounded up so that every world of ranks divides it


def layers_of(model: torch.nn.Module) -> torch.nn.ModuleList:
    """The decoder's layers: the longest list of modules, whatever the kind of model calls it."""
    return max((part for part in model.modules() if isinstance(part, torch.nn.ModuleList)), key=len)


def sharded(chosen: Options, world: int) -> Any:
    mesh = init_device_mesh("cuda", (world,))
    with torch.device("meta"):
        model = models.build(chosen.model, **({"vocab_size": VOCABULARY} if chosen.model.startswith("opt-") else {}))
    model = models.prepared(model, chosen)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in layers_of(model):
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    model.to_empty(device="cuda")
    return model


def train(chosen: Options, world: int) -> None:
    model = sharded(chosen, world)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for tokens in batches(chosen):
        output = model(input_ids=tokens, labels=tokens)
        output.loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        del output, tokens


if __name__ == "__main__":
    chosen = options(parser(__doc__, model="opt-6.7b", batch=8, length=2048).parse_args())
    world = ranks.begin()
    train(chosen, world)
    report(f"FSDP2 {chosen.model} {chosen.strategy}, rank 0 of {world}")
    ranks.end()
