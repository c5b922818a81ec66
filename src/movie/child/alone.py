"""A process group whose other ranks do not exist.

Collectives on the phantom's own NCCL return at once and move nothing. What is changed here is what would wait for
others, or believe what it reads back from a card that computes nothing: rendezvous, groups of CPU tensors, objects that
travel as tensors, comparisons among ranks.
"""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Callable
from typing import Any

from .after_import import after_import


def arrange() -> None:
    """For process groups made from now on."""
    after_import("torch.distributed.distributed_c10d", _in_c10d)
    after_import("torch.distributed.utils", _in_utils)
    after_import("torch.nn.parallel.distributed", _in_data_parallel)
    after_import("deepspeed.runtime.zero.utils", _in_deepspeed)


def _in_c10d(c10d: Any) -> None:
    start = c10d.init_process_group

    @functools.wraps(start)
    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        from torch.distributed import HashStore  # noqa: PLC0415  -- while this module is imported it is not there yet

        values = dict(zip(("init_method", "timeout", "world_size", "rank", "store", "group_name"), args))  # noqa: B905
        values.update(kwargs)
        rank, world = (_given(values, "rank", "RANK", 0), _given(values, "world_size", "WORLD_SIZE", 1))
        if rank != 0:
            raise RuntimeError(f"on a phantom card rank 0 runs alone, and this is rank {rank} of {world}")
        # Also where the program gives a rendezvous of its own: nobody will come to it.
        values.update(init_method=None, store=HashStore(), rank=rank, world_size=world)
        return start(_without_gloo(c10d, backend), **values)

    c10d.init_process_group = init_process_group
    new_group = c10d.new_group

    @functools.wraps(new_group)
    def new_group_without_gloo(
        ranks: Any = None, timeout: Any = None, backend: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        if backend is not None:
            backend = _without_gloo(c10d, backend)
        return new_group(ranks, timeout, backend, *args, **kwargs)

    c10d.new_group = new_group_without_gloo
    for name, instead in _OBJECTS.items():
        _replace(c10d, name, instead)
    for name in ("_store_based_barrier", "monitored_barrier"):
        _replace(c10d, name, lambda *args, **kwargs: None)


def _given(values: dict[str, Any], name: str, variable: str, otherwise: int) -> int:
    """What the program says, else what the environment says."""
    value = values.get(name, -1)
    return int(os.environ.get(variable, otherwise)) if value is None or value < 0 else int(value)


def _without_gloo(c10d: Any, backend: Any) -> str:
    """The backends, with one that talks to nobody for tensors on the CPU: gloo connects to its peers at once."""
    from torch.testing._internal.distributed import fake_pg  # noqa: F401, PLC0415  -- registers it

    wanted = str(backend or "undefined").lower()
    if wanted in ("undefined", "cpu:gloo,cuda:nccl"):
        return "cpu:fake,cuda:nccl"
    if ":" in wanted:
        return wanted.replace("gloo", "fake")
    return "fake" if wanted == "gloo" else wanted


def _replace(module: Any, name: str, instead: Callable[..., Any]) -> None:
    original = getattr(module, name, None)
    if original is not None:
        setattr(module, name, functools.wraps(original)(instead))


def _all_gather_object(object_list: list[Any], obj: Any, *args: Any, **kwargs: Any) -> None:
    for index in range(len(object_list)):
        object_list[index] = copy.deepcopy(obj)


def _gather_object(obj: Any, object_gather_list: list[Any] | None = None, *args: Any, **kwargs: Any) -> None:
    if object_gather_list is not None:
        _all_gather_object(object_gather_list, obj)


def _scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: Any = None, *args: Any, **kwargs: Any
) -> None:
    if scatter_object_input_list:
        scatter_object_output_list[0] = scatter_object_input_list[0]


# Ranks tell each other the same; what only another rank knows stays as it was.
_OBJECTS: dict[str, Callable[..., Any]] = {
    "all_gather_object": _all_gather_object,
    "gather_object": _gather_object,
    "scatter_object_list": _scatter_object_list,
    "broadcast_object_list": lambda *args, **kwargs: None,
}


def _in_utils(utils: Any) -> None:
    """Shapes of parameters are compared on the card."""
    _replace(utils, "_verify_param_shape_across_processes", lambda *args, **kwargs: None)


def _in_data_parallel(module: Any) -> None:
    """DistributedDataParallel orders its buckets anew after the first iteration, as rank 0 says: through the card."""
    _replace(module, "_verify_param_shape_across_processes", lambda *args, **kwargs: None)
    module.dist.Reducer._rebuild_buckets = lambda reducer: False


def _in_deepspeed(utils: Any) -> None:
    """Lists that rank 0 sends to the others, and comparisons, are read back from the card."""
    _replace(utils, "get_lst_from_rank0", lambda lst: lst)
    _replace(utils, "assert_lst_len_same_as_other_ranks", lambda lst: None)
