"""Calling a function when a module has been imported, before whoever imports it sees it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_calls: dict[str, list[Callable[[Any], None]]] = {}


def after_import(name: str, call: Callable[[Any], None]) -> None:
    """Calls with the module once it is imported; at once if it is already."""
    if name in sys.modules:
        call(sys.modules[name])
        return
    if not _calls:
        sys.meta_path.insert(0, _Finder())
    _calls.setdefault(name, []).append(call)


class _Finder(MetaPathFinder):
    """Lets the other finders find a module, and takes part in loading it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _calls:
            return None
        for finder in sys.meta_path:
            if finder is self:
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    _join(fullname, spec.loader)
                return spec
        return None


def _join(name: str, loader: Loader) -> None:
    """The loader of one module, asked to call what waits for it."""
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        for call in _calls.pop(name, []):
            call(module)

    loader.exec_module = exec_module  # type: ignore[method-assign]
