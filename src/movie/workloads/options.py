"""What the workloads have in common on their command lines."""

import argparse
import random
from dataclasses import dataclass

LETTERS = "NRLO"
LENGTHS = ("fix", "var", "tail")


@dataclass(frozen=True)
class Options:
    """`lengths`: `fix`, each batch has `length` tokens; `var`, from 128 to `length` of them, drawn for each batch;
    `tail`, as many as the longest of its sequences, whose lengths have a long tail that ends at `length`."""

    model: str
    strategy: str
    batch: int
    iterations: int
    length: int
    lengths: str
    seed: int

    @property
    def recompute(self) -> bool:
        return "R" in self.strategy

    @property
    def adapters(self) -> bool:
        return "L" in self.strategy

    @property
    def offload(self) -> bool:
        return "O" in self.strategy


def parser(
    what: str | None, *, model: str, batch: int, length: int = 1024, iterations: int = 10
) -> argparse.ArgumentParser:
    """The command line that all share, with a workload's own defaults."""
    arguments = argparse.ArgumentParser(
        description=(what or "").partition("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    arguments.add_argument("--model", default=model)
    arguments.add_argument("--strategy", default="N", type=_strategy, help="letters of N, R, L, O")
    arguments.add_argument("--batch", type=int, default=batch)
    arguments.add_argument("--iterations", type=int, default=iterations)
    arguments.add_argument("--length", type=int, default=length)
    arguments.add_argument("--lengths", choices=LENGTHS, default="fix")
    arguments.add_argument("--seed", type=int, default=0)
    return arguments


def draw_of(chosen: Options) -> random.Random:
    """What a run draws its lengths from."""
    return random.Random(chosen.seed)


def options(arguments: argparse.Namespace) -> Options:
    """The shared options among those that were parsed."""
    return Options(**{name: getattr(arguments, name) for name in Options.__dataclass_fields__})


def _strategy(text: str) -> str:
    letters = text.upper()
    if not letters or set(letters) - set(LETTERS):
        raise argparse.ArgumentTypeError(f"{text!r} has letters other than {', '.join(LETTERS)}")
    return letters
