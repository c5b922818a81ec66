"""Writes the type stubs of the native module, or checks that they are what would be written.

python tools/stubs.py [--check]
"""

import difflib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_STUBS = _ROOT / "src" / "movie" / "_core"


def generate(folder: Path) -> Path:
    """Writes the stubs of the module as it is built now, in the project's format; returns their folder."""
    stubgen = [sys.executable, "-m", "nanobind.stubgen", "-q", "-r", "-m", "movie._core", "-O", folder]
    subprocess.run(stubgen, check=True)
    subprocess.run(["ruff", "format", "-q", "--config", _ROOT / "pyproject.toml", folder], check=True)
    return folder / _STUBS.name


def texts(folder: Path) -> dict[str, str]:
    """The stub files of a folder, by name."""
    return {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.pyi")}


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        new = generate(Path(folder))
        if "--check" not in sys.argv[1:]:
            shutil.rmtree(_STUBS, ignore_errors=True)
            shutil.copytree(new, _STUBS)
            return 0
        built, committed = texts(new), texts(_STUBS)
    if built == committed:
        print("stubs: up to date")
        return 0
    for name in sorted(built | committed):
        lines = (text.get(name, "").splitlines(keepends=True) for text in (committed, built))
        sys.stdout.writelines(difflib.unified_diff(*lines, f"committed {name}", f"built {name}"))
    print("stubs: out of date; run `make stubs` and commit the result")
    return 1


if __name__ == "__main__":
    sys.exit(main())
