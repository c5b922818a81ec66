"""Tries the phantom with each supported release of torch, one after the other, and prints a table of what happened.

    make phantom-matrix                                    all of them
    python tools/phantom_matrix.py 2.6.0 2.14.1            some

Each release is installed by pip, with MOVie, into a virtual environment in a temporary folder (about 5 GB, removed
again), where tests/integration/phantom_scripts/small_training.py runs in five ways:

- native, expandable: under PyTorch's own allocator and under its expandable segments;
- capture: recorded, and the model of native must predict every address and segment (movie.evaluate.fidelity);
- movie: under MOVie without the bridge; bridge: under MOVie with a bridge compiled against the release.

The lists of symbols are compared with what the release imports. A release that cannot be had is named with pip's
reason: where that is a constraint in pip's own configuration, PIP_CONSTRAINT=/dev/null in the environment leaves it
out. Exits with 1 if one that could be had does not work.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from movie.phantom.cards import find_card
from movie.phantom.environment import phantom_environment
from movie.phantom.settings import PhantomSettings

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "tests/integration/phantom_scripts/small_training.py"
SYMBOLS = ROOT / "tools/phantom_symbols.py"

# The last release of each minor version that the phantom is meant for.
RELEASES = ["2.6.0", "2.7.1", "2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0"]
MODES = ("native", "expandable", "capture", "movie", "bridge")
INSTALL_SECONDS = 1800
RUN_SECONDS = 600
# Its drivers tell of a fabric, if it has one or not. Where they do not, as on cards before it, PyTorch 2.13 fails with
# expandable segments (its issue 186374): on the phantom of such a card, too.
CARD = "h100"
ROOM = 8 << 30  # bytes that one environment needs for a while


@dataclass
class Outcome:
    """What one release did.

    `modes`: allocator to "ok" or what went wrong. `ties`: the rule among blocks of one size that fits the capture.
    `problem`: why it was not tried.
    """

    release: str
    problem: str = ""
    cuda: str = ""
    cudnn: int = 0
    symbols: str = ""
    ties: str = ""
    modes: dict[str, str] = field(default_factory=dict)
    seconds: float = 0

    @property
    def failed(self) -> bool:
        return not self.problem and {self.symbols, *self.modes.values()} != {"ok"}


def reason(text: str) -> str:
    """The line of a program's output that tells best why it failed."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if " is a phantom: " not in line]  # said at the start of each run
    if said := [line for line in lines if line.startswith("phantom:")]:
        return said[0][:160]  # the ones after it say what to do
    errors = [line for line in lines if re.match(r"ERROR:|what\(\):|\w*(Error|Exception)\b", line)]
    return (errors or lines or ["no output"])[-1][:160]


def refusal(output: str, errors: str) -> str:
    """Why pip did not install something. Which requirements are in conflict, it says in its output alone."""
    said = [line.strip() for line in output.splitlines()]
    if "The conflict is caused by:" not in said:
        return reason(errors)
    caused = said[said.index("The conflict is caused by:") + 1 :]
    caused = caused[: caused.index("")] if "" in caused else caused
    return "; ".join(caused)[:160]


def install_movie(folder: Path, wheels: Path) -> None:
    """Installs MOVie beside a release, from a wheel that is built for the first of them."""
    if not list(wheels.glob("*.whl")):
        how = ("-q", "--no-deps", "--no-build-isolation")
        subprocess.run([sys.executable, "-m", "pip", "wheel", *how, "-w", str(wheels), str(ROOT)], check=True)
    (wheel,) = wheels.glob("*.whl")
    subprocess.run([str(folder / "venv/bin/python"), "-m", "pip", "install", "-q", str(wheel)], check=True)


def install(release: str, folder: Path, python: str) -> str:
    """Installs the CUDA build of a release. Returns "" or why it cannot be had."""
    if shutil.disk_usage(folder).free < ROOM:
        return f"not tried: less than {ROOM >> 30} GiB are free in {folder}"
    subprocess.run([python, "-m", "venv", str(folder / "venv")], check=True)
    # Three signs: not one of the builds that carry a local version, such as those for the CPU.
    command = [
        str(folder / "venv/bin/python"),
        "-m",
        "pip",
        "install",
        "--progress-bar=off",
        "--no-cache-dir",
        f"torch==={release}",
        "setuptools",  # what compiles extensions of torch needs it
    ]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"not installable: took longer than {INSTALL_SECONDS} s"
    return "" if result.returncode == 0 else f"not installable: {refusal(result.stdout, result.stderr)}"


class Trouble(Exception):
    """A program did not do what it should; the message is for the table."""


def run(folder: Path, variables: dict[str, str], *arguments: str) -> str:
    """Runs the environment's Python. Returns what it printed.

    Raises:
        Trouble: it failed, or took too long.
    """
    command = [str(folder / "venv/bin/python"), "-W", "ignore", *arguments]
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), **variables}
    try:
        result = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, timeout=RUN_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise Trouble(f"took longer than {RUN_SECONDS} s") from error
    if result.returncode != 0:
        raise Trouble(f"exit code {result.returncode}: {reason(result.stderr or result.stdout)}")
    return result.stdout


def on_phantom(folder: Path, card: str, expandable: bool) -> str:
    settings = PhantomSettings(find_card(card), quiet=True)
    chosen = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": f"expandable_segments:{expandable}"}
    with phantom_environment(settings, chosen) as variables:
        return run(folder, variables, str(SCRIPT))


def captured(folder: Path, card: str) -> str:
    program = (str(folder / "venv/bin/python"), str(SCRIPT))
    said = run(folder, {}, "-m", "movie", "capture", "--device", card, "-o", "run.parquet", "--", *program)
    found = run(folder, {}, "-m", "movie.evaluate.fidelity", "run.parquet")
    ties = found.splitlines()[1].split()[0]
    return json.dumps({**json.loads(said.splitlines()[-1]), "ties": ties})


def under_movie(folder: Path, card: str, bridge: bool) -> str:
    if bridge:
        run(folder, {}, "-m", "movie", "bridge", "build")
    variables = {"MOVIE_BRIDGE": "require" if bridge else "off"}
    program = (str(folder / "venv/bin/python"), str(SCRIPT))
    return run(folder, variables, "-m", "movie", "run", "--phantom", card, "--", *program)


def try_mode(folder: Path, mode: str, card: str) -> tuple[str, dict[str, object]]:
    """Runs the training script. Returns "ok" or what went wrong, and what the script printed."""
    try:
        if mode == "capture":
            said = captured(folder, card)
        elif mode in ("movie", "bridge"):
            said = under_movie(folder, card, mode == "bridge")
        else:
            said = on_phantom(folder, card, mode == "expandable")
    except Trouble as trouble:
        return str(trouble), {}
    return "ok", json.loads(said.splitlines()[-1])


def symbols(folder: Path) -> str:
    """ "ok", or the functions that the release imports and the lists lack."""
    site = next((folder / "venv/lib").glob("python*/site-packages"))
    result = subprocess.run(
        [sys.executable, str(SYMBOLS), "--check", str(site)], capture_output=True, text=True, check=False
    )
    return "ok" if result.returncode == 0 else reason(result.stdout or result.stderr)


def attempt(release: str, wheels: Path, python: str, card: str) -> Outcome:
    outcome = Outcome(release)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="phantom-matrix-") as name:
        folder = Path(name)
        outcome.problem = install(release, folder, python)
        if not outcome.problem:
            install_movie(folder, wheels)
            outcome.symbols = symbols(folder)
            for mode in MODES:
                outcome.modes[mode], document = try_mode(folder, mode, card)
                outcome.cuda = str(document.get("cuda") or outcome.cuda)
                outcome.ties = str(document.get("ties") or outcome.ties)
                outcome.cudnn = int(str(document.get("cudnn") or outcome.cudnn))
    outcome.seconds = time.monotonic() - started
    return outcome


def row(outcome: Outcome) -> str:
    start = f"{outcome.release:8}"
    if outcome.problem:
        return start + outcome.problem
    modes = "  ".join(f"{mode}: {result}" for mode, result in outcome.modes.items())
    versions = f"CUDA {outcome.cuda:5} cuDNN {outcome.cudnn:<6}"
    return f"{start}{versions}  symbols: {outcome.symbols}  {modes}  ties: {outcome.ties}  ({outcome.seconds:.0f} s)"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("releases", nargs="*", default=RELEASES, metavar="RELEASE")
    parser.add_argument("--python", default=sys.executable, help="the Python of the environments")
    parser.add_argument("--card", default=CARD, help=f"the card that the phantom is (default: {CARD})")
    options = parser.parse_args()
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="phantom-matrix-") as folder:
        for release in options.releases:
            outcomes.append(attempt(release, Path(folder), options.python, options.card))
            print(row(outcomes[-1]), flush=True)
    tried = [outcome for outcome in outcomes if not outcome.problem]
    failed = [outcome.release for outcome in outcomes if outcome.failed]
    print(f"{len(outcomes)} releases, {len(tried)} tried, {len(failed)} failed {' '.join(failed)}".rstrip())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
