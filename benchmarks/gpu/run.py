"""Measures a real card, and writes one JSON document. See README.md beside it.

    python benchmarks/gpu/run.py [-o FILE] [--only PART] [--dry] [--against FILE] [--minutes N]

Each part runs in a process of its own with a limit of time; PART is driver, correctness, training or requests. `--dry`
makes the training tiny and minds no values: for a phantom. `--against`: a document of another card, or of a phantom of
this one, whose requests have to be the same, event by event.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MINUTES = 8
WAYS = {
    "native": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:False"},
    "expandable": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    "movie": {"MOVIE_POLICY": "auto"},
    "movie-lean": {"MOVIE_POLICY": "lean"},
}
WORKLOADS = ("lengths", "recomputation", "images")  # of workloads.py
# In the child: MOVie first where it is wanted, then the part, and its answer in the last line.
_CHILD = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
import torch
if sys.argv[3] == "movie":
    import movie
    movie.enable()
print(json.dumps(importlib.import_module(sys.argv[2]).main()))
from movie.child.last_backward import wait_for_rest
wait_for_rest()  # a child whose last step is a backward pass may abort at its end otherwise
"""


class Limits:
    def __init__(self, minutes: float) -> None:
        self._end = time.monotonic() + 60 * minutes

    def left(self) -> float:
        return max(self._end - time.monotonic(), 1.0)


def run(part: str, way: str, limits: Limits, **variables: str) -> dict[str, Any]:
    """What a part found under an allocator, or {"error": why it did not."""
    environment = {**os.environ, **WAYS[way], **variables}
    command = [sys.executable, "-c", _CHILD, str(HERE), part, way.partition("-")[0]]
    try:
        result = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=limits.left(), check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": "no time was left"}
    if result.returncode != 0:
        return {"error": (result.stderr.strip() or f"exit code {result.returncode}").splitlines()[-1]}
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return found


def correctness(limits: Limits) -> dict[str, Any]:
    found: dict[str, Any] = {way: run("correctness", way, limits) for way in ("native", "movie", "movie-lean")}
    losses = [found[way].get("losses") for way in found]
    found["losses_are_bit_equal"] = None not in losses and losses[0] == losses[1] == losses[2]
    return found


def training(limits: Limits, scale: str) -> dict[str, Any]:
    """Each workload under each allocator: on the whole card, then on ever less of it while the run completes."""
    return {
        workload: {
            way: run("training", way, limits, MOVIE_GPU_SCALE=scale, MOVIE_GPU_WORKLOAD=workload) for way in WAYS
        }
        for workload in WORKLOADS
    }


def difference(ours: list[Any], theirs: list[Any]) -> str:
    """The first request that is not the same; empty: all are."""
    for number, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        if one != other:
            return f"request {number}: {one} here, {other} there"
    return "" if len(ours) == len(theirs) else f"{len(ours)} requests here, {len(theirs)} there"


def failures(document: Any, values: bool = True) -> list[str]:
    """All errors in the document, and with `values` what is not as it has to be."""
    if not isinstance(document, dict):
        return []
    wrong = [str(document["error"])] if "error" in document else []
    for key, value in document.items():
        wrong.extend(failures(value, values))
        if not values:
            continue
        if key.startswith("wrong_bytes") and value != 0:
            wrong.append(f"{key}: {value}")
        if key in ("graphs_are_whole", "losses_are_bit_equal") and value is not True:
            wrong.append(f"{key}: {value}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("card.json"))
    parser.add_argument("--only", choices=("driver", "correctness", "training", "requests"))
    parser.add_argument("--against", type=Path)
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="after which no part goes on")
    arguments = parser.parse_args()
    limits = Limits(arguments.minutes)
    document: dict[str, Any] = {"seconds": time.monotonic()}
    if arguments.only in (None, "driver"):
        document["driver"] = run("driver_facts", "native", limits)
    if arguments.only in (None, "correctness"):
        document["correctness"] = correctness(limits)
    scale = "dry" if arguments.dry else "full"
    if arguments.only in (None, "training"):
        document["training"] = training(limits, scale)
    if arguments.only in (None, "requests"):
        document["requests"] = run("training", "native", limits, MOVIE_GPU_SCALE=scale, MOVIE_GPU_REQUESTS="1")
    document["seconds"] = time.monotonic() - document["seconds"]
    arguments.output.write_text(json.dumps(document, indent=1), encoding="utf-8")
    wrong = failures(document, values=not arguments.dry)
    if arguments.against:
        theirs = json.loads(arguments.against.read_text(encoding="utf-8"))
        found = difference(document["requests"].get("requests", []), theirs["requests"].get("requests", []))
        wrong.extend(filter(None, [found]))
    for text in wrong:
        print(f"WRONG: {text}", file=sys.stderr)
    print(arguments.output)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
