"""Fully sharded training (FullyShardedDataParallel) of an OPT-like model.

    torchrun --nproc-per-node 8 -m movie.workloads.fsdp1 --strategy R

Computation in bfloat16, a unit of sharding for each layer.
"""

import functools
from typing import Any

import torch
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
from transformers.models.opt.modeling_opt import OPTDecoderLayer

from movie.workloads import models, ranks
from movie.workloads.batches import batches
from movie.workloads.options import Options, options, parser
from movie.workloads.report import report


def sharded(chosen: Options) -> Any:
    with torch.device("meta"):
        model = models.build(chosen.model)
    model = models.prepared(model, chosen)
    return FullyShardedDataParallel(
        model,
        auto_wrap_policy=functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={OPTDecoderLayer}),
        mixed_precision=MixedPrecision(
            param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16, buffer_dtype=torch.bfloat16
        ),
        device_id=torch.cuda.current_device(),
        param_init_fn=lambda module: module.to_empty(device="cuda", recurse=False),
        use_orig_params=True,
    )


def train(chosen: Options) -> None:
    model = sharded(chosen)
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
    train(chosen)
    report(f"FSDP1 {chosen.model} {chosen.strategy}, rank 0 of {world}")
    ranks.end()
