"""One rank of several, started by torchrun."""

import os

import torch
import torch.distributed as dist


def begin() -> int:
    """Joins the group of all ranks, with this one's card as the current one. Returns how many there are."""
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("nccl")
    return dist.get_world_size()


def end() -> None:
    """Leaves the group."""
    dist.destroy_process_group()
