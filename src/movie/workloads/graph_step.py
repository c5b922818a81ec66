"""Training steps captured as CUDA graphs, one for each of four sequence lengths, that share a pool of memory.

Batches of other lengths run without a graph, as in programs that capture the most frequent shapes.
"""

import random
from typing import Any

import torch

from movie.workloads import models
from movie.workloads.options import Options, options, parser
from movie.workloads.report import report

GRAPHS = 4
_WARM_UP = 2


class Step:
    """Forward pass, backward pass and optimizer for a batch that lies still."""

    def __init__(self, model: Any, optimizer: Any, tokens: Any) -> None:
        self._model, self._optimizer, self.tokens = model, optimizer, tokens

    def run(self) -> None:
        output = self._model(input_ids=self.tokens, labels=self.tokens)
        output.loss.backward()
        del output
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)


def warm_up(step: Step) -> None:
    """Runs a step on a side stream, so that libraries have their workspaces and the optimizer its states."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(_WARM_UP):
            step.run()
    torch.cuda.current_stream().wait_stream(side)


def captured(step: Step, pool: Any) -> Any:
    """The step as a graph."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        step.run()
    return graph


def train(chosen: Options) -> None:
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = models.build(chosen.model, use_cache=False)
    model = models.prepared(model, chosen)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, capturable=True)
    lengths = [chosen.length * part // GRAPHS for part in range(GRAPHS, 0, -1)]
    steps = {
        length: Step(model, optimizer, torch.zeros(chosen.batch, length, dtype=torch.int64, device="cuda"))
        for length in lengths
    }
    warm_up(steps[chosen.length])
    pool = torch.cuda.graph_pool_handle()
    graphs = {length: captured(step, pool) for length, step in steps.items()}
    draw = random.Random(chosen.seed)
    for number in range(chosen.iterations):
        length = draw.choice(lengths) if number % 2 else draw.randint(128, chosen.length)
        tokens = torch.randint(0, 30000, (chosen.batch, length), device="cuda")
        if length in graphs:
            steps[length].tokens.copy_(tokens)
            graphs[length].replay()
        else:
            Step(model, optimizer, tokens).run()
        del tokens


if __name__ == "__main__":
    chosen = options(parser(__doc__, model="tinyllama-1.1b", batch=6, length=2048, iterations=12).parse_args())
    train(chosen)
    report(f"{chosen.model} in {GRAPHS} graphs")
