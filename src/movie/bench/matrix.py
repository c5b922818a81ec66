"""Which training runs are measured. Their names: movie.bench.cells."""

from movie.bench.cells import Cell

FIXED = 6  # iterations; after the second each is like the others
VARYING = 10  # each batch has another length
SHARDED = 8
LONG = 16  # for a look at how things go on
SHORT = 5  # of runs that take long on a phantom


def _hf(model: str, batch: int, fixed: str = "", varying: str = "", length: int = 2048) -> list[Cell]:
    """Fine-tuning on one card with Hugging Face, a cell for each strategy, with lengths that are alike or vary."""
    return [Cell(model, "hf", letters, 1, batch, length, "fix", FIXED) for letters in fixed.split()] + [
        Cell(model, "hf", letters, 1, batch, length, "var", VARYING) for letters in varying.split()
    ]


def _sharded(model: str, framework: str, strategies: str, ranks: tuple[int, ...], batch: int, run: str) -> list[Cell]:
    """Rank 0 of several. `run`: lengths and how long they are, as in `var2048`."""
    lengths, length = run[:3], int(run[3:])
    return [
        Cell(model, framework, letters, world, batch, length, lengths, SHARDED)
        for letters in strategies.split()
        for world in ranks
    ]


def _zero3(model: str, iterations: int, **batches: tuple[int, int]) -> list[Cell]:
    """A cell for each strategy, with its ranks and its batch: 512 tokens, as DeepSpeed-Chat's fine-tuning has them."""
    return [Cell(model, "zero3", name, *ranks, 512, "fix", iterations) for name, ranks in batches.items()]


# One or two of each kind, in the order in which an interrupted bench shows most. Batches are such that runs ask for
# some 10 to 70 GiB. Weights, gradients and AdamW's states of a model of n parameters take 8n bytes (bfloat16) without L
# and O, so models from 6B on are trained with adapters or sharded.
_KINDS: tuple[Cell, ...] = (
    *_hf("opt-1.3b", 8, "N", "R"),
    Cell("opt-1.3b", "hf", "LR", 1, 16, 2048, "var", LONG),
    *_hf("opt-1.3b", 4, varying="N"),
    *_zero3("opt-1.3b", SHARDED, Z=(4, 24), ZR=(4, 172), ZLR=(4, 160)),
    *_sharded("opt-6.7b", "fsdp2", "ZR", (8,), 8, "var2048"),
    Cell("opt-1.3b", "rlhf", "N", 1, 32, 128, "var", 3),
    Cell("opt-350m", "rollouts", "N", 1, 64, 128, "tail", 2),
    Cell("unet-sd1.5", "diffusion", "N", 1, 16, 512, "var", 8),
    Cell("tinyllama-1.1b", "micro", "N", 1, 4, 2048, "tail", 4),
    Cell("llama3.2-1b", "packed", "N", 1, 2, 8192, "tail", 5),
    Cell("opt-1.3b", "evaluating", "N", 1, 4, 2048, "var", 10),
    Cell("opt-1.3b", "checkpoints", "ZR", 4, 8, 2048, "var", 10),
    Cell("mixtral-small", "moe", "R", 1, 16, 2048, "var", 8),
    Cell("resnet50", "vision", "N", 1, 64, 384, "var", 12),
    Cell("transformer-6", "compile", "N", 1, 16, 1024, "var", 10),
    Cell("tinyllama-1.1b", "graphs", "N", 1, 6, 2048, "fix", 12),
)
# GMLake's: DeepSpeed ZeRO-3 on 4 cards under five strategies, and OPT-13B on 1 to 16. Its batches were not published
# but for one; these are near the most that an A100 of 80 GB holds.
_PUBLISHED: tuple[Cell, ...] = (
    *_zero3("opt-1.3b", SHORT, ZRO=(4, 164), ZLRO=(4, 176)),
    *(
        Cell("opt-13b", "zero3", "ZLR", *ranks, 512, "fix", SHORT)
        for ranks in ((1, 100), (2, 80), (4, 92), (8, 92), (16, 76))
    ),
    *_zero3("vicuna-13b", SHORT, Z=(4, 1), ZR=(4, 24), ZLR=(4, 120), ZLRO=(4, 124)),
    *_zero3("gpt-neox-20b", SHORT, ZLR=(4, 88), ZLRO=(4, 120), Z=(8, 2), ZR=(8, 28)),
)
_MODELS: tuple[Cell, ...] = (
    *_hf("tinyllama-1.1b", 4, "N", "N R LR"),
    *_hf("codegen-2b", 2, "N", "N R LR"),
    *_hf("llama3-8b", 2, "LR", "LR LRO"),
    *_hf("qwen2-1.5b", 4, "R", "N R LR"),
    *_hf("mobilellm-125m", 16, "N", "N R"),
    *_hf("gpt-neox-20b", 1, varying="LR"),
    *_sharded("opt-6.7b", "fsdp1", "ZR", (8,), 8, "var2048"),
    *_sharded("opt-6.7b", "fsdp2", "ZR", (2, 4, 16), 8, "var2048"),
    *_sharded("opt-13b", "fsdp2", "ZR", (8, 16), 4, "var2048"),
    *_hf("opt-1.3b", 8, "R LR O RO", "RO LRO"),
    *_hf("opt-2.7b", 4, "R LR", "R LR LRO"),
    *_hf("opt-6.7b", 4, "LR", "LR LRO"),
    *_hf("opt-13b", 2, "LR", "LR LRO"),
    *_hf("codegen-350m", 8, "N", "N R"),
    *_hf("codegen-6b", 2, varying="LR LRO"),
    *_hf("codegen2-1b", 4, varying="N R"),
    *_hf("codegen2-3.7b", 4, varying="LR"),
    *_hf("mobilellm-350m", 8, varying="N R"),
    *_hf("mobilellm-1b", 4, varying="N R"),
    *_hf("vicuna-13b", 2, varying="LR"),
    *_hf("qwen2-7b", 4, varying="LR"),
    Cell("opt-1.3b", "hf", "R", 1, 8, 2048, "tail", VARYING),
    Cell("opt-1.3b", "hf", "LR", 1, 16, 2048, "tail", VARYING),
    Cell("opt-1.3b", "rlhf", "LR", 1, 24, 256, "fix", 2),
    Cell("opt-1.3b", "rlhf-zero3", "Z", 4, 16, 128, "var", 2),
    Cell("qwen2-1.5b", "rollouts", "LR", 1, 32, 256, "tail", 2),
    Cell("unet-sd1.5", "diffusion", "R", 1, 32, 768, "var", 8),
    *_sharded("opt-1.3b", "zero3", "Z ZR", (4,), 8, "var2048"),
)
FULL: tuple[Cell, ...] = (*_KINDS, *_PUBLISHED, *_MODELS)

# A look at each kind of trouble, short enough for two cores and ten minutes.
QUICK: tuple[Cell, ...] = (
    Cell("opt-1.3b", "hf", "N", 1, 4, 2048, "var", 8),
    Cell("opt-1.3b", "hf", "R", 1, 8, 2048, "var", 8),
    Cell("opt-1.3b", "hf", "LR", 1, 16, 2048, "var", 8),
    Cell("mobilellm-125m", "hf", "N", 1, 16, 2048, "var", 6),
    Cell("opt-1.3b", "zero3", "Z", 4, 24, 512, "fix", 4),
    Cell("opt-6.7b", "fsdp2", "ZR", 8, 8, 2048, "var", 6),
)
