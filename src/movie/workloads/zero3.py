"""DeepSpeed ZeRO-3 of a causal language model in float16.

    deepspeed --num_gpus 4 --module movie.workloads.zero3 --strategy R

As DeepSpeed-Chat trains: attention as written out in the model (`eager`), with a mask; reentrant checkpoints; adapters
that are part of the linear layers (`movie.workloads.lora`). The embeddings at both ends are two tensors, as they become
where weights are loaded into shards without being tied. Strategy O keeps parameters and optimizer on the host.
"""

import argparse
from typing import Any

import deepspeed
import torch
from torch.nn.functional import cross_entropy
from transformers.integrations import HfDeepSpeedConfig

from movie.workloads import models
from movie.workloads.batches import batches
from movie.workloads.lora import adapt
from movie.workloads.options import Options, options, parser
from movie.workloads.report import report


def configuration(chosen: Options, efficient_linear: bool = False) -> dict[str, Any]:
    """Of DeepSpeed: what DeepSpeed-Chat asks of ZeRO-3, and offload as the strategy says.

    `efficient_linear`: DeepSpeed's own default. Linear layers then leave gathered weights to ZeRO, instead of keeping
    them until their backward pass.
    """
    zero: dict[str, Any] = {
        "stage": 3,
        "stage3_param_persistence_threshold": 10_000,
        "stage3_max_live_parameters": 30_000_000,
        "stage3_prefetch_bucket_size": 30_000_000,
        "memory_efficient_linear": efficient_linear,
    }
    if chosen.offload:
        zero["offload_optimizer"] = {"device": "cpu"}
        zero["offload_param"] = {"device": "cpu"}
    return {
        "train_micro_batch_size_per_gpu": chosen.batch,
        "gradient_accumulation_steps": 1,
        "fp16": {"enabled": True, "initial_scale_power": 16},
        "zero_optimization": zero,
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "gradient_clipping": 1.0,
    }


def train(chosen: Options, efficient_linear: bool = False) -> None:
    deepspeed.init_distributed()
    config = configuration(chosen, efficient_linear)
    keep = HfDeepSpeedConfig(config)  # while it lives, models are built in shards
    model = models.build(chosen.model, attn_implementation="eager", tie_word_embeddings=False)
    if chosen.adapters:
        adapt(model)
        model.enable_input_require_grads()
    if chosen.recompute:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": True})
    model.train()
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=True)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config, model_parameters=parameters)
    del keep
    for tokens in batches(chosen):
        mask = torch.ones_like(tokens)
        loss = loss_of(engine(input_ids=tokens, attention_mask=mask).logits, tokens)
        engine.backward(loss)
        engine.step()
        del loss, mask, tokens


def loss_of(logits: Any, tokens: Any) -> Any:
    """Of predicting each next token, in the precision of the logits, which here are the largest tensors of all."""
    return cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1))


if __name__ == "__main__":
    arguments: argparse.ArgumentParser = parser(__doc__, model="opt-1.3b", batch=24, length=512, iterations=8)
    arguments.add_argument("--local_rank", type=int, default=0, help="given by the launcher")
    arguments.add_argument("--efficient-linear", action="store_true", help="DeepSpeed's memory_efficient_linear")
    given = arguments.parse_args()
    chosen = options(given)
    train(chosen, given.efficient_linear)
    report(f"ZeRO-3 {chosen.model} {chosen.strategy}, rank 0 of {torch.distributed.get_world_size()}")
