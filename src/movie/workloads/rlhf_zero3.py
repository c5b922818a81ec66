"""The third step of reinforcement learning from human feedback under DeepSpeed ZeRO-3, as DeepSpeed-Chat takes it, in
float16.

    deepspeed --num_gpus 4 --module movie.workloads.rlhf_zero3 --batch 8

As `movie.workloads.rlhf`, with all four models in shards: each token that the actor writes gathers its weights anew.
"""

import argparse
from typing import Any

import deepspeed
import torch
from transformers.integrations import HfDeepSpeedConfig

from movie.workloads import models
from movie.workloads.options import Options, options, parser
from movie.workloads.report import report
from movie.workloads.rlhf import Judge, iterate
from movie.workloads.zero3 import configuration


class Learner:
    """A sharded model that is trained."""

    def __init__(self, model: Any, config: dict[str, Any]) -> None:
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        optimizer = torch.optim.AdamW(parameters, lr=1e-5, fused=True)
        self.model, *_ = deepspeed.initialize(
            model=model, optimizer=optimizer, config=config, model_parameters=parameters
        )

    def learn(self, loss: Any) -> None:
        self.model.backward(loss)
        self.model.step()


def frozen(model: Any, config: dict[str, Any]) -> Any:
    """A sharded model that only judges."""
    engine, *_ = deepspeed.initialize(model=model.requires_grad_(False).eval(), config=config)
    return engine


def train(chosen: Options) -> None:
    deepspeed.init_distributed()
    config = configuration(chosen)
    keep = HfDeepSpeedConfig(config)  # while it lives, models are built in shards
    actor = Learner(models.prepared(models.build(chosen.model, tie_word_embeddings=False), chosen), config)
    reference = frozen(models.build(chosen.model, tie_word_embeddings=False), config)
    critic, reward = Learner(Judge(chosen, trained=True), config), frozen(Judge(chosen, trained=False), config)
    del keep
    iterate(chosen, actor, critic, reference, reward)


if __name__ == "__main__":
    arguments: argparse.ArgumentParser = parser(__doc__, model="opt-1.3b", batch=8, length=128, iterations=3)
    arguments.add_argument("--local_rank", type=int, default=0, help="given by the launcher")
    chosen = options(arguments.parse_args())
    train(chosen)
    report(f"RLHF, ZeRO-3 {chosen.model} {chosen.strategy}, rank 0 of {torch.distributed.get_world_size()}")
