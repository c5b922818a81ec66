"""Prints which driver calls in the allocator's sources saw a failure in the fault test, and fails unless all did.

python tools/fault_sites.py TEST_FAULTS

TEST_FAULTS is the program built from tests/native/faults.cpp, with debug information. It writes down the address of
each call to the driver that was made, and of each that was made to fail; addr2line says which lines these are.
"""

import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

_NATIVE = Path(__file__).parents[1] / "native"
_LAYERS = ("memory", "ordering", "placement", "allocator")
_MAY_FAIL = (
    "reserve|free_address|create|release|map|unmap|set_access|malloc|mfree|"
    "event_record|event_query|event_synchronize|stream_wait|synchronize"
)
_CALL = re.compile(rf"\bdriver_?\.({_MAY_FAIL})\(")

Place = tuple[str, int]  # file below native/, line


def calls_in_sources() -> dict[Place, str]:
    """Every call to the driver that may fail: where it stands, and what it calls."""
    places = {}
    for layer in _LAYERS:
        for path in sorted([*(_NATIVE / layer).rglob("*.cpp"), *(_NATIVE / layer).rglob("*.h")]):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                for call in _CALL.finditer(line.split("//")[0]):
                    places[str(path.relative_to(_NATIVE)), number] = call[1]
    return places


def lines_of(program: Path, offsets: list[int]) -> list[Place]:
    """The source line of each return address, counted from where the program is loaded."""
    addresses = "\n".join(hex(offset - 1) for offset in offsets)  # the call is before the return address
    output = subprocess.run(
        ["addr2line", "-e", program], input=addresses, check=True, capture_output=True, text=True
    ).stdout
    places = []
    for line in output.splitlines():
        file, _, number = line.partition(" ")[0].rpartition(":")
        path = Path(file).resolve()
        name = str(path.relative_to(_NATIVE)) if path.is_relative_to(_NATIVE) else path.name
        places.append((name, int(number) if number.isdigit() else 0))
    return places


def nearest(place: Place, places: dict[Place, str]) -> Place | None:
    """The call that stands there: a call that spans lines may be known by a later one of them."""
    for back in range(4):
        if (place[0], place[1] - back) in places:
            return place[0], place[1] - back
    return None


def main() -> int:
    program = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "sites"
        code = subprocess.run([program, record], check=False).returncode
        if not record.exists():
            return code
        rows = [line.split() for line in record.read_text(encoding="utf-8").splitlines()]
    sources = calls_in_sources()
    seen: dict[Place, set[str]] = defaultdict(set)
    for (what, _, _), place in zip(rows, lines_of(program, [int(row[2]) for row in rows]), strict=True):
        if (known := nearest(place, sources)) is not None:
            seen[known].add(what)
    failed = [place for place in sources if "failed" in seen[place]]
    for place, call in sources.items():
        state = "failed" if "failed" in seen[place] else "called, never failed" if seen[place] else "never called"
        print(f"{place[0]}:{place[1]}: {call}: {state}")
    percent = 100 * len(failed) // len(sources)
    print(f"{len(failed)} of {len(sources)} driver calls in the sources saw a failure: {percent} %")
    return code or int(len(failed) < len(sources))


if __name__ == "__main__":
    sys.exit(main())
