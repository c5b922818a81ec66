"""One cell of the matrix: a training run, and the commands that belong to it."""

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any

from movie.errors import InputError

_PYTHON = (sys.executable, "-m")
# DeepSpeed's launcher is a script, which a virtual environment may have elsewhere than its Python.
_DEEPSPEED = (sys.executable, "-c", "from deepspeed.launcher.runner import main; main()")
# Frameworks and the workloads that use them. The first run on one card, the others as rank 0 of several.
ONE_CARD = {
    "hf": "causal",
    "micro": "accumulation",
    "packed": "packed",
    "evaluating": "evaluating",
    "rlhf": "rlhf",
    "rollouts": "rollouts",
    "moe": "moe",
    "diffusion": "diffusion",
    "vision": "vision",
    "compile": "compiled",
    "graphs": "graph_step",
}
SHARDED = {
    "fsdp2": "fsdp2",
    "fsdp1": "fsdp1",
    "zero3": "zero3",
    "rlhf-zero3": "rlhf_zero3",
    "checkpoints": "checkpointing",
}
_UNDER_DEEPSPEED = ("zero3", "rlhf-zero3")
SHARDING = "Z"  # a letter of strategies here; to the workloads it goes without saying
# How operations are counted: without a run, for what is one pass of a language model; or in a run of its own.
_COUNTED_AHEAD = ("hf", "fsdp1", "fsdp2", "zero3", "checkpoints")
_COUNTED_RUNNING = ("micro", "packed", "evaluating", "rlhf", "rlhf-zero3", "rollouts", "moe", "diffusion", "vision")
_COUNTED_AS = {"rlhf_zero3": "rlhf"}  # the same work, without shards


@dataclass(frozen=True)
class Cell:
    """A training run. `workload`: the model. `strategy`: letters of N, R, L, O and Z. `batch`: of one rank.

    `length`: tokens (pixels, for images); `lengths`: `fix`, or `var` for lengths drawn for each batch, up to `length`,
    or `tail` where those of sequences have a long tail.
    """

    workload: str
    framework: str
    strategy: str
    ranks: int
    batch: int
    length: int
    lengths: str
    iterations: int

    @property
    def name(self) -> str:
        """`opt-1.3b/hf/LR/1x16/var2048x30`: model, framework, strategy, ranks x batch, lengths x iterations."""
        run = f"{self.lengths}{self.length}x{self.iterations}"
        return f"{self.workload}/{self.framework}/{self.strategy}/{self.ranks}x{self.batch}/{run}"

    @property
    def command(self) -> tuple[str, ...]:
        """What is run, and watched."""
        module = f"movie.workloads.{self.script}"
        if self.framework in _UNDER_DEEPSPEED:
            return (*_DEEPSPEED, "--num_gpus", str(self.ranks), "--module", module, *self._options())
        if self.framework in SHARDED:
            launcher = ("torch.distributed.run", "--nproc-per-node", str(self.ranks), "-m")
            return (*_PYTHON, *launcher, module, *self._options())
        return (*_PYTHON, module, *self._options())

    @property
    def script(self) -> str:
        """The workload's name in movie.workloads."""
        return (ONE_CARD | SHARDED).get(self.framework, self.framework)

    @property
    def counter(self) -> str:
        """Which script of movie.workloads counts floating-point operations; empty where none does."""
        if self.framework in _COUNTED_AHEAD:
            return "flops"
        return "operations" if self.framework in _COUNTED_RUNNING else ""

    @property
    def counting(self) -> tuple[str, ...] | None:
        """The command that prints the operations of an iteration, as its last line; None where nobody counts them."""
        if not self.counter:
            return None
        workload = (_COUNTED_AS.get(self.script, self.script),) if self.counter == "operations" else ()
        return (*_PYTHON, f"movie.workloads.{self.counter}", *workload, *self._options())

    def _options(self) -> tuple[str, ...]:
        given = {
            "--model": self.workload,
            "--strategy": self.strategy.replace(SHARDING, "") or "N",
            "--batch": self.batch,
            "--length": self.length,
            "--lengths": self.lengths,
            "--iterations": self.iterations,
            "--seed": 0,
        }
        return tuple(str(part) for option in given.items() for part in option)

    def as_data(self) -> dict[str, Any]:
        """Plain data, from which `Cell(**data)` makes an equal one."""
        return asdict(self)


def selected(cells: Sequence[Cell], glob: str) -> list[Cell]:
    """Those whose names match, all if `glob` is empty; `*` stands for anything, `/` included.

    Raises InputError where none does.
    """
    found = [cell for cell in cells if not glob or fnmatchcase(cell.name, glob)]
    if not found:
        some = ", ".join(cell.name for cell in cells[:3])
        raise InputError(f"--only {glob!r} matches none of the {len(cells)} cells, such as {some}")
    return found
