"""Which backend "nccl" is under MOVie, with a made-up torch.distributed of PyTorch 2.14 and 2.15."""

import os
from types import SimpleNamespace
from typing import Any

import pytest

from movie.torch.limits import _without_registering_backends


class Backend:
    def __init__(self) -> None:
        self._plugins: dict[str, Any] = {}

    def register_backend(self, name: str, func: Any, **options: Any) -> None:
        assert options == {"extended_api": True, "devices": ["cuda"]}
        self._plugins[name.upper()] = SimpleNamespace(creator_fn=func)


def first() -> None:
    """Creates a group of the first backend."""


def second() -> None:
    """Creates a group of the second one."""


def another() -> None:
    """Creates a group of a backend that the program registered itself."""


def distributed(registered: Any, by_default: Any = second) -> Any:
    """Of PyTorch 2.15, where "nccl" is registered when it is first used; by default something else in 2.14."""
    backend = Backend()
    if registered is not None:
        backend._plugins["NCCL"] = SimpleNamespace(creator_fn=registered)

    def register() -> None:
        chosen = {"0": first, "1": second}.get(os.environ.get("TORCH_DIST_USE_NCCL2", ""), by_default)
        backend._plugins["NCCL"] = SimpleNamespace(creator_fn=chosen)

    return SimpleNamespace(Backend=backend, _create_nccl2_process_group=second, _register_builtin_nccl_backend=register)


@pytest.mark.parametrize("by_default", [first, second])
@pytest.mark.parametrize(("registered", "used"), [(None, first), (second, first), (first, first), (another, another)])
def test_nccl_is_the_backend_that_registers_no_memory(registered, used, by_default, monkeypatch):
    monkeypatch.delenv("TORCH_DIST_USE_NCCL2", raising=False)
    module = distributed(registered, by_default)
    _without_registering_backends(module)
    assert module.Backend._plugins["NCCL"].creator_fn is used
    assert "TORCH_DIST_USE_NCCL2" not in os.environ


def test_who_asks_for_the_other_backend_is_told(monkeypatch):
    monkeypatch.setenv("TORCH_DIST_USE_NCCL2", "1")
    module = distributed(None)
    with pytest.warns(RuntimeWarning, match="TORCH_DIST_USE_NCCL2 has no effect under MOVie"):
        _without_registering_backends(module)
    assert module.Backend._plugins["NCCL"].creator_fn is first
    assert os.environ["TORCH_DIST_USE_NCCL2"] == "1"


@pytest.mark.parametrize("name", ["nccl2", "nccl-lazy"])
def test_a_backend_that_registers_memory_is_refused_by_name(name):
    module = distributed(None)
    _without_registering_backends(module)
    with pytest.raises(RuntimeError, match=f"does not support the backend '{name}'.*use 'nccl'"):
        module.Backend._plugins[name.upper()].creator_fn("options", None)


def test_nothing_changes_before_2_14():
    module = SimpleNamespace(Backend=Backend())
    _without_registering_backends(module)
    assert module.Backend._plugins == {}
