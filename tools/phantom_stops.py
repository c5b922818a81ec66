"""Generates the functions of NVIDIA's libraries that the phantom GPU answers without an implementation.

    python tools/phantom_stops.py OUTPUT.cpp LIST.txt...

Each function in a list (native/phantom/symbols) becomes a weak definition that stops the run and says its name; one
that is implemented in native/phantom is a strong symbol, and the linker prefers it. Those in harmless.txt become strong
functions that return a fixed value; a function that is both harmless and implemented does not link.
"""

import argparse
import re
import sys
from pathlib import Path

HARMLESS = "harmless.txt"

_HARMLESS_LINE = re.compile(r"(?P<name>\w+) = (?P<value>-?\d+): (?P<reason>\S.*)")


def lines_of(path: Path) -> list[tuple[int, str]]:
    """The lines that say something, with their numbers."""
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    return [(number, line.strip()) for number, line in lines if line.split("#")[0].strip()]


def read_harmless(path: Path) -> dict[str, tuple[int, str]]:
    """Function: (what it returns, why). Raises ValueError for a line without a reason and for a repeated name."""
    found: dict[str, tuple[int, str]] = {}
    for number, line in lines_of(path):
        match = _HARMLESS_LINE.fullmatch(line)
        if not match:
            raise ValueError(f"{path}:{number}: not 'function = value: reason': {line}")
        if match["name"] in found:
            raise ValueError(f"{path}:{number}: {match['name']} stands here twice")
        found[match["name"]] = (int(match["value"]), match["reason"])
    return found


def read_names(lists: list[Path]) -> set[str]:
    """All functions of the lists."""
    return {line.split()[0] for path in lists for _, line in lines_of(path)}


def generate(lists: list[Path]) -> str:
    harmless: dict[str, tuple[int, str]] = {}
    for path in lists:
        if path.name == HARMLESS:
            harmless = read_harmless(path)
    names = read_names([path for path in lists if path.name != HARMLESS])
    text = "// Written by tools/phantom_stops.py.\n"
    text += '#include "phantom/device/stop.h"\n\n'
    text += '#define WEAK extern "C" __attribute__((weak, visibility("default"))) void\n'
    text += '#define FIXED extern "C" __attribute__((visibility("default"))) int\n\n'
    for name in sorted(names - set(harmless)):
        text += f'WEAK {name}() {{ movie::phantom::stop("{name}"); }}\n'
    text += "\n"
    for name, (value, reason) in sorted(harmless.items()):
        text += f"FIXED {name}() {{ return {value}; }}  // {reason}\n"
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("lists", type=Path, nargs="+", metavar="LIST", help=f"functions; {HARMLESS}: what some return")
    options = parser.parse_args()
    try:
        text = generate(options.lists)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    # An unchanged file keeps its time, so nothing is compiled for nothing.
    if not options.output.exists() or options.output.read_text(encoding="utf-8") != text:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
