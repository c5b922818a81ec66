"""Fully sharded training (FSDP2) that writes checkpoints: every fifth iteration its whole state is gathered.

    torchrun --nproc-per-node 4 -m movie.workloads.checkpointing --strategy R

The state is that of model and optimizer, tensor by tensor: each is put together on the card, from the shards of all
ranks, and goes to the host.
"""

import torch
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict

from movie.workloads import ranks
from movie.workloads.batches import batches
from movie.workloads.fsdp2 import sharded
from movie.workloads.options import Options, options, parser
from movie.workloads.report import report

EVERY = 5  # iterations


def train(chosen: Options, world: int) -> None:
    model = sharded(chosen, world)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
    for number, tokens in enumerate(batches(chosen), start=1):
        output = model(input_ids=tokens, labels=tokens)
        output.loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        del output, tokens
        if number % EVERY == 0:
            get_state_dict(model, optimizer, options=whole)  # a file is not written


if __name__ == "__main__":
    chosen = options(parser(__doc__, model="opt-1.3b", batch=8, length=2048).parse_args())
    world = ranks.begin()
    train(chosen, world)
    report(f"FSDP2 {chosen.model} {chosen.strategy} with checkpoints, rank 0 of {world}")
    ranks.end()
