"""What PyTorch cannot do with an allocator that is not its own, and what it does instead, so that programs go on."""

import os
import warnings
from collections.abc import Callable
from typing import Any

from movie.child.after_import import after_import

_NCCL_HOOK = "TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK"
_NCCL_CHOICE = "TORCH_DIST_USE_NCCL2"
_REGISTERING = ("nccl2", "nccl-lazy")  # backends of torch.distributed


def arrange_limits(torch: Any, bridged: bool) -> None:
    """`bridged`: the compiled bridge answers torch's C++ code."""
    _without_nccl_hook()
    after_import("torch.distributed.distributed_c10d", _without_registering_backends)
    if not bridged:
        after_import("torch._inductor.config", _plain_graphs)
        _without_cudnn_search(torch)


def _plain_graphs(config: Any) -> None:
    """torch.compile's trees of CUDA graphs rewind the allocator to earlier moments; its plain graphs do not."""
    config.triton.cudagraph_trees = False


def _without_nccl_hook() -> None:
    """NCCL registers only the first page of a range. With this variable PyTorch would have it register all memory, and
    ends the process where the allocator does not take part (under expandable segments it ignores the variable, too)."""
    if os.environ.pop(_NCCL_HOOK, "") not in ("", "0"):
        warnings.warn(f"{_NCCL_HOOK} has no effect under MOVie", RuntimeWarning, stacklevel=5)


def _without_registering_backends(distributed: Any) -> None:
    """PyTorch has a second backend for NCCL since 2.14; since 2.15 "nccl" means that (in 2.14 if asked for). It
    registers all memory, and ends the process where the allocator does not take part. Here "nccl" means the first one,
    and whoever names the other gets an error in place of an abort."""
    second = getattr(distributed, "_create_nccl2_process_group", None)
    if second is None:
        return
    chosen = distributed.Backend._plugins.get("NCCL")  # none until it is first used
    if chosen is None or chosen.creator_fn is second:
        wanted = os.environ.get(_NCCL_CHOICE)
        if wanted not in (None, "", "0"):
            warnings.warn(f"{_NCCL_CHOICE} has no effect under MOVie", RuntimeWarning, stacklevel=6)
        os.environ[_NCCL_CHOICE] = "0"
        distributed._register_builtin_nccl_backend()  # looks at the variable here, and nowhere else
        if wanted is None:
            del os.environ[_NCCL_CHOICE]
        else:
            os.environ[_NCCL_CHOICE] = wanted
    for name in _REGISTERING:
        distributed.Backend.register_backend(name, _refusal_of(name), extended_api=True, devices=["cuda"])


def _refusal_of(backend: str) -> Callable[..., Any]:
    def refuse(*_: Any) -> None:
        raise RuntimeError(
            f"MOVie does not support the backend {backend!r}, which registers memory with NCCL: use 'nccl'"
        )

    return refuse


def _without_cudnn_search(torch: Any) -> None:
    """cuDNN's search for the fastest algorithm asks PyTorch how much memory is left, which raises here."""
    switch = torch._C._set_cudnn_benchmark

    def refuse(wanted: bool) -> None:
        if wanted:
            warnings.warn(
                "torch.backends.cudnn.benchmark has no effect under MOVie without its bridge (movie bridge build)",
                RuntimeWarning,
                stacklevel=3,
            )
        else:
            switch(wanted)

    torch._C._set_cudnn_benchmark = refuse
    switches: Callable[..., Any] = type(torch.backends.cudnn).__dict__["benchmark"]
    switches.setter = refuse  # type: ignore[attr-defined]
