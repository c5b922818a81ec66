"""Functions of torch that are wrapped, where a program finds them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


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
