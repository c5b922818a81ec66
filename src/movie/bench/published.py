"""What GMLake's authors published, beside the cells that come nearest to it.

Read off the figures of its repository (antgroup/glake, GMLake; the paper is ASPLOS 2024, 10.1145/3620665.3640423), so
good to about half a point: shares of memory in use under PyTorch 2.0's native allocator and under GMLake.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """Shares from 0 to 1, of peak active over peak reserved."""

    workload: str
    strategy: str  # as of movie.bench.cells
    ranks: int
    native: float
    gmlake: float


# Of the two experiments: three models on 4 cards, OPT-13B with LoRA and recomputation on 1 to 16.
PUBLISHED = (
    Published("opt-1.3b", "Z", 4, 0.93, 0.965),
    Published("opt-1.3b", "ZR", 4, 0.66, 0.88),
    Published("opt-1.3b", "ZLR", 4, 0.64, 0.89),
    Published("opt-1.3b", "ZRO", 4, 0.64, 0.88),
    Published("opt-1.3b", "ZLRO", 4, 0.635, 0.875),
    Published("vicuna-13b", "Z", 4, 0.96, 1.0),
    Published("vicuna-13b", "ZR", 4, 0.84, 0.88),
    Published("vicuna-13b", "ZLR", 4, 0.77, 0.925),
    Published("vicuna-13b", "ZRO", 4, 0.78, 0.92),
    Published("vicuna-13b", "ZLRO", 4, 0.80, 0.915),
    Published("gpt-neox-20b", "Z", 4, 0.955, 0.955),
    Published("gpt-neox-20b", "ZR", 4, 0.96, 0.96),
    Published("gpt-neox-20b", "ZLR", 4, 0.79, 0.95),
    Published("gpt-neox-20b", "ZRO", 4, 0.73, 0.945),
    Published("gpt-neox-20b", "ZLRO", 4, 0.715, 0.945),
    Published("opt-13b", "ZLR", 1, 0.88, 0.97),
    Published("opt-13b", "ZLR", 2, 0.78, 0.90),
    Published("opt-13b", "ZLR", 4, 0.79, 0.90),
    Published("opt-13b", "ZLR", 8, 0.77, 0.91),
    Published("opt-13b", "ZLR", 16, 0.69, 0.84),
)
UNKNOWN = (
    "Batch sizes: one is published (OPT-1.3B LR: 160). The others here are near the most that 80 GB hold.",
    "PyTorch: theirs was 2.0 with GMLake's patches and CUDA 11.4; ours is the version named above.",
    "What is counted as used: theirs are active blocks, rounded as PyTorch rounds them; ours are requested bytes.",
    "Optimizer, adapters, precision of the logits, sequence lengths and number of iterations are DeepSpeed-Chat's as "
    "far as its scripts say; which of them the published runs changed is not known.",
    "GPT-NeoX-20B without adapters needs more than 4 cards of 80 GB for its weights, gradients and optimizer states "
    "alone (82 GB each), so its published N and R cannot be the same experiment; here they run on 8.",
    "`gmlake` here is ours, after its published code, with its default settings.",
)
