"""Training whose forward and backward passes are CUDA graphs, one for each of four sequence lengths.

The graphs share a pool of memory. Gradients lie in it, those of each graph for themselves, and the optimizer steps
outside. One batch in four is of another length and runs without a graph, as in programs that capture the most frequent
shapes.
"""

import random
from typing import Any

import torch

from movie.workloads import models
from movie.workloads.options import Options, options, parser
from movie.workloads.report import report

GRAPHS = 4
_WARM_UP = 2
_CYCLE = 4  # batches, the last of which has no graph


class Graph:
    """The passes over a batch that lies still, and the gradients that they make."""

    def __init__(self, model: Any, tokens: Any, pool: Any) -> None:
        self._graph, self._tokens = torch.cuda.CUDAGraph(), tokens
        self._parameters = list(model.parameters())
        with torch.cuda.graph(self._graph, pool=pool):
            passes(model, tokens)
        self._gradients = [parameter.grad for parameter in self._parameters]

    def replay(self, tokens: Any) -> None:
        """Leaves the gradients of `tokens` at the parameters."""
        self._tokens.copy_(tokens)
        self._graph.replay()
        for parameter, gradient in zip(self._parameters, self._gradients, strict=True):
            parameter.grad = gradient


def passes(model: Any, tokens: Any) -> None:
    model(input_ids=tokens, labels=tokens).loss.backward()


def warm_up(model: Any, optimizer: Any, chosen: Options) -> None:
    """Steps on a side stream, so that libraries have their workspaces and the optimizer its states."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(_WARM_UP):
            passes(model, batch(chosen, chosen.length))
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    torch.cuda.current_stream().wait_stream(side)


def batch(chosen: Options, length: int) -> Any:
    return torch.randint(0, 30000, (chosen.batch, length), device="cuda")


def train(chosen: Options) -> None:
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = models.build(chosen.model, use_cache=False)
    model = models.prepared(model, chosen)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    warm_up(model, optimizer, chosen)
    pool = torch.cuda.graph_pool_handle()
    graphs = {}
    for length in [chosen.length * part // GRAPHS for part in range(GRAPHS, 0, -1)]:
        tokens = batch(chosen, length)
        optimizer.zero_grad(set_to_none=True)
        graphs[length] = Graph(model, tokens, pool)
    draw = random.Random(chosen.seed)
    for number in range(1, chosen.iterations + 1):
        if number % _CYCLE:
            length = draw.choice(sorted(graphs))
            graphs[length].replay(batch(chosen, length))
            optimizer.step()
        else:
            optimizer.zero_grad(set_to_none=True)
            passes(model, batch(chosen, draw.randint(128, chosen.length)))
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)


if __name__ == "__main__":
    chosen = options(parser(__doc__, model="tinyllama-1.1b", batch=6, length=2048, iterations=16).parse_args())
    train(chosen)
    report(f"{chosen.model} in {GRAPHS} graphs")
