"""Training steps captured as CUDA graphs, one for each sequence length, that share a pool of memory.

Steps of lengths that are not captured run as they are, as programs do that capture the most frequent shapes.
"""

import random
from typing import Any

import torch

from movie.workloads import models
from movie.workloads.options import Options, options, parser
from movie.workloads.report import report

GRAPHS = 3
_WARM_UP = 2


class Step:
    """Forward, backward and optimizer on a batch that lies still."""

    def __init__(self, model: Any, optimizer: Any, tokens: Any) -> None:
        self._model, self._optimizer, self.tokens = model, optimizer, tokens

    def run(self) -> None:
        self._optimizer.zero_grad(set_to_none=True)
        output = self._model(input_ids=self.tokens, labels=self.tokens)
        output.loss.backward()
        self._optimizer.step()


def captured(step: Step, pool: Any) -> Any:
    """The step as a graph. It runs before on a side stream, so that libraries have their workspaces."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(_WARM_UP):
            step.run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        step.run()
    return graph


def train(chosen: Options) -> None:
    torch.set_default_dtype(torch.bfloat16)
    # A mask that does not depend on values: a captured step cannot look at them.
    with torch.device("cuda"):
        model = models.build(chosen.model, attn_implementation="sdpa", use_cache=False)
    model = models.prepared(model, chosen)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, capturable=True)
    draw = random.Random(chosen.seed)
    pool = torch.cuda.graph_pool_handle()
    lengths = [chosen.length >> place for place in range(GRAPHS)]
    steps = {
        length: Step(model, optimizer, torch.zeros(chosen.batch, length, dtype=torch.int64, device="cuda"))
        for length in lengths
    }
    graphs = {length: captured(step, pool) for length, step in steps.items()}
    for _ in range(chosen.iterations):
        length = draw.choice([*lengths, draw.randint(128, chosen.length)])
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
