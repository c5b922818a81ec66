"""Does what `movie capture` records hold? The workloads of this package, captured and checked.

    python -m movie.capture.acceptance [NAME...]

captures each workload (or those whose names contain a NAME) under native and under expandable segments, and prints a
line for each: rows, the most bytes requested and reserved, how much of the latter was used, and what was measured
before for the same workload; for native how many addresses the model of it predicts otherwise; and by how much a replay
of the capture through PyTorch's real allocator on a phantom differs in bytes reserved. Exits with 1 if a run fails, a
share differs by more than 2 points, any address, or the replay by more than 2 MiB.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from movie import _core
from movie.capture.assemble import traces_of
from movie.capture.program import ALLOCATORS, Watching, choose_allocator, watched, why_nothing
from movie.errors import InputError
from movie.evaluate.columns import columns_of
from movie.evaluate.comparison import Facts, facts_of
from movie.evaluate.fidelity import check_native
from movie.phantom.cards import DEFAULT, find_card
from movie.phantom.environment import phantom_environment
from movie.phantom.process import Output
from movie.phantom.settings import PhantomSettings
from movie.sizes import format_size
from movie.trace import Trace, write_trace

POINTS = 0.02  # of the share that is used
REPLAY = 2 << 20  # bytes
_PYTHON = (sys.executable, "-m")
_EIGHT = (*_PYTHON, "torch.distributed.run", "--nproc-per-node", "8", "-m")
_DEEPSPEED = (sys.executable, "-c", "from deepspeed.launcher.runner import main; main()", "--num_gpus", "4", "--module")


@dataclass(frozen=True)
class Workload:
    """`used`: the share measured before with torch 2.14 under native and under expandable segments, if it was."""

    name: str
    command: tuple[str, ...]
    used: tuple[float, float] | None = None

    def reference(self, allocator: str) -> float | None:
        return None if self.used is None else self.used[ALLOCATORS.index(allocator)]


def _workload(
    name: str, options: str, used: tuple[float, float] | None = None, launcher: tuple[str, ...] = _PYTHON
) -> Workload:
    module, *arguments = options.split()
    return Workload(name, (*launcher, f"movie.workloads.{module}", *arguments), used)


_VAR = "--length 2048 --lengths var --iterations 30"
WORKLOADS = (
    _workload("opt-1.3b N fixed", "causal --batch 8", (0.966, 0.993)),
    _workload("opt-1.3b R fixed", "causal --batch 8 --strategy R"),
    _workload("opt-1.3b LR fixed", "causal --batch 16 --strategy LR"),
    _workload("opt-1.3b N var", f"causal --batch 4 {_VAR}", (0.740, 0.981)),
    _workload("opt-1.3b R var", f"causal --batch 8 --strategy R {_VAR}", (0.503, 0.952)),
    _workload("opt-1.3b LR var", f"causal --batch 16 --strategy LR {_VAR}", (0.431, 0.987)),
    _workload("tinyllama N var", f"causal --model tinyllama-1.1b --batch 4 {_VAR}", (0.751, 0.985)),
    _workload("codegen-2b N var", f"causal --model codegen-2b --batch 2 {_VAR}", (0.577, 0.975)),
    _workload(
        "codegen-2b N var, eager",
        "causal --model codegen-2b --attention eager --batch 1 --length 2048 --lengths var --iterations 14",
        (0.653, 0.975),
    ),
    _workload("llama3-8b LR var", f"causal --model llama3-8b --batch 4 --strategy LR {_VAR}", (0.571, 0.986)),
    _workload("mixtral-small R var", "moe --strategy R --lengths var"),
    _workload(
        "fsdp2 opt-6.7b R var, 8 ranks",
        "fsdp2 --strategy R --lengths var --iterations 12",
        (0.540, 0.854),
        launcher=_EIGHT,
    ),
    _workload(
        "fsdp2 opt-6.7b R var, batch 16",
        "fsdp2 --batch 16 --strategy R --lengths var --iterations 10",
        (0.640, 0.893),
        launcher=_EIGHT,
    ),
    _workload("fsdp1 opt-6.7b R var, 8 ranks", "fsdp1 --strategy R --lengths var --iterations 12", launcher=_EIGHT),
    _workload("zero3 opt-1.3b N, 4 ranks", "zero3 --batch 24 --efficient-linear", (0.914, 0.974), launcher=_DEEPSPEED),
    _workload("zero3 opt-1.3b R, 4 ranks", "zero3 --batch 172 --strategy R", (0.632, 0.941), launcher=_DEEPSPEED),
    _workload("zero3 opt-1.3b LR, 4 ranks", "zero3 --batch 160 --strategy LR", (0.629, 0.948), launcher=_DEEPSPEED),
    _workload("zero3 opt-1.3b LRO, 4 ranks", "zero3 --batch 176 --strategy LRO", (0.616, 0.943), launcher=_DEEPSPEED),
    _workload("graph step tinyllama", "graph_step", (0.554, 0.646)),
    _workload("compiled transformer var", "compiled --lengths var"),
    _workload("resnet50 var", "vision --lengths var"),
    _workload("unet var", "diffusion --model unet-small --batch 4 --lengths var --iterations 4"),
)


@dataclass(frozen=True)
class Checked:
    """A captured workload. Sizes in bytes. `wrong`: None where the model does not apply."""

    workload: Workload
    allocator: str
    facts: Facts
    reserved: int
    retries: int
    wrong: int | None
    replayed: int

    @property
    def used(self) -> float:
        return self.facts.peak_allocated / self.reserved

    @property
    def good(self) -> bool:
        reference = self.workload.reference(self.allocator)
        return (
            (reference is None or abs(self.used - reference) <= POINTS)
            and not self.wrong
            and abs(self.replayed - self.reserved) <= REPLAY
        )


def check(workload: Workload, allocator: str) -> Checked:
    """Captures a workload and looks at the trace. Raises InputError for one that does not come to its end."""
    phantom = PhantomSettings(find_card(DEFAULT), quiet=True)
    watching = Watching(phantom, allocator, output=Output.NOWHERE)
    with watched(workload.command, watching) as ended:
        if not ended.recorded:
            raise InputError(why_nothing(ended))
        traces = traces_of(ended.recorded[0], ended, watching)
    if len(traces) != 1 or not traces[0].complete:
        raise InputError("; ".join(traces[0].warnings) if traces else "nothing was recorded")
    trace = traces[0]
    return Checked(
        workload=workload,
        allocator=allocator,
        facts=facts_of(trace, _core.floor_of(columns_of(trace))),
        reserved=int(trace.header["peak reserved"]),
        retries=int(trace.header["retries"]),
        wrong=check_native(trace).mistakes if allocator == "native" else None,
        replayed=replayed(trace, phantom, allocator),
    )


def replayed(trace: Trace, phantom: PhantomSettings, allocator: str) -> int:
    """The most bytes that PyTorch's real allocator reserves for the trace. Raises InputError if that fails."""
    with TemporaryDirectory(prefix="movie-replayed-") as folder, phantom_environment(phantom) as environment:
        path = Path(folder, "trace.parquet")
        write_trace(trace, path)
        choose_allocator(environment, allocator)
        result = subprocess.run(
            [*_PYTHON, "movie.capture.replayed", str(path)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if result.returncode:
        raise InputError(f"the replay through the real allocator failed: {result.stderr.strip().splitlines()[-1:]}")
    return int(json.loads(result.stdout)["peak_reserved"])


_FORMAT = "{:30}  {:10}  {:>9}  {:>10}  {:>10}  {:>6}  {:>6}  {:>5}  {:>10}  {}"
_HEADINGS = ("workload", "segments", "rows", "requested", "reserved", "used", "before", "wrong", "replayed", "")


def _line(result: Checked) -> str:
    reference = result.workload.reference(result.allocator)
    return _FORMAT.format(
        result.workload.name,
        result.allocator,
        f"{result.facts.events:,}",
        format_size(result.facts.peak_requested),
        format_size(result.reserved),
        f"{result.used:.1%}",
        "" if reference is None else f"{reference:.1%}",
        "" if result.wrong is None else result.wrong,
        "same" if result.replayed == result.reserved else f"{(result.replayed - result.reserved) / 2**20:+,.1f} MiB",
        "" if result.good else "<-- ",
    ).rstrip()


def main(names: Sequence[str]) -> int:
    """Prints the table; 0 if all is well, 1 if not, 2 for a name that is in no workload's."""
    chosen = [one for one in WORKLOADS if not names or any(name in one.name for name in names)]
    if not chosen:
        print(f"no workload's name contains {' or '.join(names)}", file=sys.stderr)
        return 2
    good = True
    print(_FORMAT.format(*_HEADINGS).rstrip(), flush=True)
    for workload in chosen:
        for allocator in ALLOCATORS:
            try:
                result = check(workload, allocator)
                print(_line(result), flush=True)
                good &= result.good
            except InputError as error:
                print(f"{workload.name:30}  {allocator:10}  failed: {error}", flush=True)
                good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
