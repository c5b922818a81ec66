"""Functions of torch that are wrapped, where a program finds them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

_EMPTY_CACHE = ("_cuda_emptyCache", "_accelerator_emptyCache")


def before_empty_cache(torch: Any, call: Callable[[], None]) -> None:
    """Whoever calls it: torch.cuda.empty_cache and torch.accelerator.empty_cache look these names up when called."""
    for name in _EMPTY_CACHE:
        if hasattr(torch._C, name):
            call_before(torch._C, name, call)


def call_before(module: Any, name: str, call: Callable[[], None]) -> None:
    """Has a function of a module preceded by a call."""
    original = getattr(module, name)

    @functools.wraps(original)
    def with_call(*args: Any, **kwargs: Any) -> Any:
        call()
        return original(*args, **kwargs)

    setattr(module, name, with_call)


def call_after(module: Any, name: str, call: Callable[[], None]) -> None:
    """Has a function of a module followed by a call."""
    original = getattr(module, name)

    @functools.wraps(original)
    def with_call(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        finally:
            call()

    setattr(module, name, with_call)
