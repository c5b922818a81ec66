"""The programs that are run, and under which allocators."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """A workload with its arguments. `ranks`: started by torchrun as so many, of which rank 0 runs; 0: not started so.

    `streams`: whether it allocates on several. `iterations_alike`: whether each asks for the same.
    """

    name: str
    module: str
    arguments: tuple[str, ...]
    ranks: int = 0
    streams: bool = False

    @property
    def alike(self) -> bool:
        return "var" not in self.arguments


@dataclass(frozen=True)
class Way:
    """An allocator. `movie`: of MOVie; `variables`: what chooses it."""

    name: str
    movie: bool
    variables: Mapping[str, str] = field(default_factory=dict)


NATIVE = Way("native", False, {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:False"})
EXPANDABLE = Way("expandable", False, {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})
AUTO = Way("movie", True, {"MOVIE_POLICY": "auto"})
LEAN = Way("movie-lean", True, {"MOVIE_POLICY": "lean"})
WAYS = (NATIVE, EXPANDABLE, AUTO, LEAN)


def _causal(model: str, strategy: str, lengths: str, batch: int) -> Case:
    arguments = ("--model", model, "--strategy", strategy, "--lengths", lengths, "--batch", str(batch))
    return Case(f"{model} {strategy} {lengths}", "movie.workloads.causal", (*arguments, "--iterations", "10"))


def _sharded(module: str, model: str, ranks: int) -> Case:
    arguments = ("--model", model, "--strategy", "R", "--lengths", "var", "--iterations", "8")
    return Case(f"{module} {model} R var", f"movie.workloads.{module}", arguments, ranks, streams=True)


CASES = (
    *(_causal("opt-1.3b", strategy, lengths, 8) for strategy in ("N", "R", "LR") for lengths in ("fix", "var")),
    _causal("tinyllama-1.1b", "R", "var", 8),
    _causal("codegen-2b", "N", "var", 2),
    _sharded("fsdp2", "opt-6.7b", 8),
    _sharded("fsdp1", "opt-6.7b", 8),
    _sharded("zero3", "opt-1.3b", 4),
)
