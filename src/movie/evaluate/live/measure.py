"""One program under one allocator on a phantom card."""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from movie import child
from movie.errors import InputError
from movie.evaluate.live.cases import Case, Way
from movie.phantom.cards import find_card
from movie.phantom.environment import phantom_environment, prepend
from movie.phantom.settings import PhantomSettings

CARD = "a100-80"
LAG = 1000


def measure(
    case: Case, way: Way, memory: int | None = None, lag: int = LAG, seed: int = 0, **variables: str
) -> dict[str, Any]:
    """What `live.run` wrote of the program, on a card that is `lag` launches behind the host (PhantomSettings says
    what `seed` does) and has `memory` bytes
    beside a context (None: what the real one has).

    Raises InputError where it failed for another reason than memory.
    """
    card = find_card(CARD)
    settings = PhantomSettings(card, None if memory is None else memory + card.context, lag=lag, seed=seed, quiet=True)
    environment = {**os.environ, "MOVIE_ALONE": "1", **way.variables, **variables}
    for name in {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"} - set(way.variables):
        environment.pop(name, None)
    if way.movie:
        environment["MOVIE_ENABLE"] = "1"
    prepend(environment, "PYTHONPATH", str(Path(child.__file__).parent / "path"))
    with TemporaryDirectory(prefix="movie-live-") as folder, phantom_environment(settings, environment) as inside:
        file = Path(folder) / "figures.json"
        program = ["-m", "movie.evaluate.live.run", str(file), case.module, *case.arguments]
        if case.ranks:
            program = ["-m", "torch.distributed.run", "--nproc-per-node", str(case.ranks), *program]
        command = [sys.executable, *program]
        result = subprocess.run(command, env=inside, capture_output=True, text=True, check=False)
        if not file.exists():
            last = (result.stderr.strip() or result.stdout.strip() or "no output").splitlines()[-1]
            raise InputError(f"{case.name} under {way.name} ended with code {result.returncode}: {last}")
        figures: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return figures
