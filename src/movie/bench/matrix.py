"""Which training runs are measured. Their names: movie.bench.cells."""

from movie.bench.cells import Cell

FIXED = 10  # iterations; after the second each is like the others
VARYING = 30  # each batch has another length
SHARDED = 12


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


# Batches are such that runs ask for some 10 to 70 GiB. Weights, gradients and AdamW's states of a model of n parameters
# take 8n bytes (bfloat16) without L and O, so models from 6B on are trained with adapters or sharded.
FULL: tuple[Cell, ...] = (
    *_hf("opt-1.3b", 8, "N R LR O RO", "R LR RO LRO"),
    *_hf("opt-1.3b", 4, varying="N"),
    *_hf("opt-2.7b", 4, "R LR", "R LR LRO"),
    *_hf("opt-6.7b", 4, "LR", "LR LRO"),
    *_hf("opt-13b", 2, "LR", "LR LRO"),
    *_hf("codegen-350m", 8, "N", "N R"),
    *_hf("codegen-2b", 2, "N", "N R LR"),
    *_hf("codegen-6b", 2, varying="LR LRO"),
    *_hf("tinyllama-1.1b", 4, "N", "N R LR"),
    *_hf("mobilellm-125m", 16, "N", "N R"),
    *_hf("mobilellm-350m", 8, varying="N R"),
    *_hf("mobilellm-1b", 4, varying="N R"),
    *_hf("llama3-8b", 2, "LR", "LR LRO"),
    *_hf("vicuna-13b", 2, varying="LR"),
    *_hf("gpt-neox-20b", 1, varying="LR"),
    *_hf("qwen2-1.5b", 4, "R", "N R LR"),
    # GMLake's kind of cells: DeepSpeed-Chat's fine-tuning under ZeRO-3 on 4 cards, and OPT-13B on 1 to 16.
    *_sharded("opt-1.3b", "zero3", "Z ZR ZO ZRO", (4,), 24, "fix512"),
    *_sharded("opt-1.3b", "zero3", "Z ZR", (4,), 8, "var2048"),
    *_sharded("vicuna-13b", "zero3", "ZR", (4,), 4, "fix512"),
    *_sharded("opt-13b", "zero3", "ZR", (4, 8, 16), 4, "fix512"),
    *_sharded("gpt-neox-20b", "zero3", "ZR", (8,), 2, "fix512"),
    *_sharded("opt-6.7b", "fsdp2", "ZR", (2, 4, 8, 16), 8, "var2048"),
    *_sharded("opt-13b", "fsdp2", "ZR", (8, 16), 4, "var2048"),
    *_sharded("opt-6.7b", "fsdp1", "ZR", (8,), 8, "var2048"),
    Cell("mixtral-small", "moe", "R", 1, 16, 2048, "var", 8),
    Cell("resnet50", "vision", "N", 1, 64, 384, "var", 20),
    Cell("transformer-6", "compile", "N", 1, 16, 1024, "var", 10),
    Cell("tinyllama-1.1b", "graphs", "N", 1, 6, 2048, "fix", 12),
)

# A look at each kind of trouble, short enough for two cores and ten minutes.
QUICK: tuple[Cell, ...] = (
    Cell("opt-1.3b", "hf", "N", 1, 4, 2048, "var", 8),
    Cell("opt-1.3b", "hf", "R", 1, 8, 2048, "var", 8),
    Cell("opt-1.3b", "hf", "LR", 1, 16, 2048, "var", 8),
    Cell("mobilellm-125m", "hf", "N", 1, 16, 2048, "var", 6),
    Cell("opt-1.3b", "zero3", "Z", 4, 24, 512, "fix", 4),
    Cell("opt-6.7b", "fsdp2", "ZR", 8, 8, 2048, "var", 6),
)
