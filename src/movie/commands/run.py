"""`movie run`: runs a program with MOVie as the allocator of its CUDA tensors."""

import os
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from movie.commands.options import Lateness, LatenessSeed, parse_lateness
from movie.errors import InputError
from movie.sizes import parse_size


def run(
    program: Annotated[
        list[str],
        typer.Argument(metavar="-- PROGRAM...", help="What to run, as without MOVie: python train.py --lr 3e-4"),
    ],
    phantom: Annotated[
        str,
        typer.Option(metavar="NAME", help="Run on a phantom of this card: a100-80, h100, ... [default: real cards]"),
    ] = "",
    memory: Annotated[
        str,
        typer.Option(metavar="SIZE", help="What each phantom card has; on real cards, the most that MOVie reserves."),
    ] = "",
    policy: Annotated[str, typer.Option(metavar="NAME", help="auto or lean. [default: MOVIE_POLICY, else auto]")] = "",
    count: Annotated[int, typer.Option(metavar="N", min=1, max=64, help="How many phantom cards.")] = 1,
    lag: Lateness = "0",
    seed: LatenessSeed = 0,
) -> int:
    """Run an unmodified training program with MOVie. Exits with the program's own exit code.

    Launchers (torchrun, accelerate launch) work as they are: each of their processes enables MOVie. On a phantom they
    run rank 0 alone.
    """
    # Imported here, so that `movie --help` and errors in the options do not wait for more than they need.
    from movie import child  # noqa: PLC0415
    from movie.phantom.cards import find_card  # noqa: PLC0415
    from movie.phantom.environment import phantom_environment, prepend  # noqa: PLC0415
    from movie.phantom.process import run_program  # noqa: PLC0415
    from movie.phantom.real_card import has_real_card  # noqa: PLC0415
    from movie.phantom.settings import PhantomSettings  # noqa: PLC0415
    from movie.torch.config import Config  # noqa: PLC0415

    size = parse_size(memory, what="--memory") if memory else None
    late = parse_lateness(lag)
    environment = dict(os.environ)
    if policy:
        environment["MOVIE_POLICY"] = policy
    if size is not None and not phantom:
        environment["MOVIE_MEMORY"] = str(size)
    Config.from_environment(environment)  # errors are said here, not by each process
    environment["MOVIE_ENABLE"] = "1"
    prepend(environment, "PYTHONPATH", str(Path(child.__file__).parent / "path"))
    with ExitStack() as stack:
        if phantom:
            settings = PhantomSettings(find_card(phantom), size, count, late, seed).check()
            environment["MOVIE_ALONE"] = "1"
            environment.pop("CUDA_VISIBLE_DEVICES", None)  # speaks of the machine's own cards
            environment = stack.enter_context(phantom_environment(settings, environment))
        elif count != 1 or late or seed:
            raise InputError("--count, --lag and --seed are of a phantom: name the card with --phantom")
        elif not has_real_card():
            raise InputError("this machine has no NVIDIA card: name one that it shall be with --phantom a100-80")
        reached = Path(stack.enter_context(TemporaryDirectory(prefix="movie-run-")))
        environment["MOVIE_RUN_FOLDER"] = str(reached)
        code = run_program(program, environment)
        if not any(reached.iterdir()):
            typer.echo(
                "movie: MOVie was not used: no process of the program imported torch, or none that PYTHONPATH reaches "
                "(python -I and -E look at no such variable)",
                err=True,
            )
        return code
