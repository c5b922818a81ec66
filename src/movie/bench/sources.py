"""What a module of this package comes from: its own source and those that it imports, however far."""

import ast
import hashlib
from functools import cache
from pathlib import Path

import movie

_ROOT = Path(movie.__file__).parent
_PACKAGE = "movie"


@cache
def sources_of(*modules: str) -> dict[str, str]:
    """The digests of all source files behind modules such as `movie.trace`, by path; native ones are not among them."""
    found: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        path = _file_of(module)
        if path is None or (name := str(path.relative_to(_ROOT))) in found:
            continue
        found[name] = content(path)
        waiting += _imported(ast.parse(path.read_text(encoding="utf-8")))
    return dict(sorted(found.items()))


def content(path: Path) -> str:
    """The digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _file_of(module: str) -> Path | None:
    """The package's own root is left out: everybody imports it, and nothing that is recorded comes from it."""
    parts = module.split(".")[1:]
    candidates = (_ROOT.joinpath(*parts).with_suffix(".py"), _ROOT.joinpath(*parts, "__init__.py")) if parts else ()
    return next((path for path in candidates if path.exists()), None)


def _imported(source: ast.AST) -> list[str]:
    """Modules of this package that a source names in its imports; names in them that are no modules do no harm."""
    found = []
    for node in ast.walk(source):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] == _PACKAGE]
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == _PACKAGE:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found
