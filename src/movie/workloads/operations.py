"""How many floating-point operations a training iteration takes, whatever the workload: counted while it runs.

    python -m movie.workloads.operations diffusion --batch 8 --lengths var

takes the name of a workload of one card with its options, runs it, on a real card or on a phantom, and prints the
operations of one iteration, averaged over the run. Counted are what PyTorch's counter knows: products of matrices,
convolutions and attention, forward and backward. (`movie.workloads.flops` counts without a run, for models of language
alone.)
"""

import sys
from importlib import import_module

from torch.utils.flop_counter import FlopCounterMode

from movie.workloads.options import options, parser


def of_iteration(workload: str, arguments: list[str]) -> float:
    """The mean over the run."""
    chosen = options(parser("", model="", batch=1).parse_args(arguments))
    train = import_module(f"movie.workloads.{workload}").train
    with FlopCounterMode(display=False) as counter:
        train(chosen)
    return counter.get_total_flops() / chosen.iterations


if __name__ == "__main__":
    print(round(of_iteration(sys.argv[1], sys.argv[2:])))
