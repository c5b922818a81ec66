"""Low-rank adapters as DeepSpeed-Chat has them: each linear layer of the blocks holds its two factors itself.

Under ZeRO-3 that matters: a layer's weight, bias and factors are fetched together, where adapters that are modules of
their own (PEFT's) are fetched each for itself.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

RANK = 128
_BLOCKS = ".layers."  # of what name the linear layers are that get adapters


class AdaptedLinear(nn.Module):
    """x W' + b + scale x R L, with `weight` W and `bias` b frozen.

    The factors, R (inputs, rank) and L (rank, outputs), are of the weight's dtype and where it is.
    """

    def __init__(self, linear: nn.Linear, rank: int = RANK) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight.requires_grad_(False), linear.bias
        if self.bias is not None:
            self.bias.requires_grad_(False)
        shape = {"dtype": linear.weight.dtype, "device": linear.weight.device}
        self.right = nn.Parameter(torch.empty(linear.in_features, rank, **shape))
        self.left = nn.Parameter(torch.zeros(rank, linear.out_features, **shape))
        nn.init.kaiming_uniform_(self.right, a=5**0.5)
        self.scale = 1 / rank

    def forward(self, x: Any) -> Any:
        return functional.linear(x, self.weight, self.bias) + (x @ self.right @ self.left) * self.scale


def adapt(model: nn.Module) -> None:
    """Puts adapters at all linear layers in the blocks of `model`, and freezes all else."""
    model.requires_grad_(False)
    linears = [(name, module) for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    for name, linear in linears:
        if _BLOCKS in name:
            parent, _, child = name.rpartition(".")
            setattr(model.get_submodule(parent), child, AdaptedLinear(linear))
