"""Writes the type stubs of the native module, or checks that they are what would be written.

    python tools/stubs.py [--check]
"""

import difflib
import subprocess
import sys
import tempfile
from pathlib import Path

_STUBS = Path(__file__).parents[1] / "src" / "movie" / "_core.pyi"


def generate(folder: Path) -> str:
    """The stubs of the module as it is built now, in the project's format."""
    path = folder / _STUBS.name
    subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "movie._core", "-o", path], check=True)
    config = _STUBS.parents[2] / "pyproject.toml"
    subprocess.run([Path(sys.executable).parent / "ruff", "format", "-q", "--config", config, path], check=True)
    return path.read_text(encoding="utf-8")


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        new = generate(Path(folder))
    if "--check" not in sys.argv[1:]:
        _STUBS.write_text(new, encoding="utf-8")
        return 0
    old = _STUBS.read_text(encoding="utf-8") if _STUBS.exists() else ""
    if new == old:
        print("stubs: up to date")
        return 0
    sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), "committed", "built"))
    print("stubs: out of date; run `make stubs` and commit the result")
    return 1


if __name__ == "__main__":
    sys.exit(main())
