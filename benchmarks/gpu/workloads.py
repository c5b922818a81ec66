"""The trainings that a card is measured with: each is a generator, whose every `next` is an iteration."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch.utils.checkpoint import checkpoint

VOCABULARY = 32000


@dataclass(frozen=True)
class Scale:
    width: int
    heads: int
    layers: int
    longest: int  # tokens of a sequence
    iterations: int


SCALES = {"full": Scale(1024, 16, 12, 1024, 24), "dry": Scale(128, 4, 2, 128, 6)}


class Block(torch.nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = torch.nn.LayerNorm(width)
        self.into = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.wide = torch.nn.Sequential(
            torch.nn.LayerNorm(width),
            torch.nn.Linear(width, 4 * width),
            torch.nn.GELU(),
            torch.nn.Linear(4 * width, width),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.into(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).softmax(-1)
        x = x + self.out((scores @ v).transpose(1, 2).flatten(-2))
        return x + self.wide(x)


class Recomputed(torch.nn.Module):
    """What is inside is computed again in the backward pass, instead of kept."""

    def __init__(self, inside: torch.nn.Module) -> None:
        super().__init__()
        self.inside = inside

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.inside, x, use_reentrant=False)


def _language_model(scale: Scale, recomputed: bool) -> Iterator[None]:
    blocks: list[torch.nn.Module] = [Block(scale.width, scale.heads) for _ in range(scale.layers)]
    if recomputed:
        blocks = [Recomputed(block) for block in blocks]
    ends = torch.nn.Embedding(VOCABULARY, scale.width), torch.nn.Linear(scale.width, VOCABULARY)
    model = torch.nn.Sequential(ends[0], *blocks, ends[1]).to("cuda", torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    draw = torch.Generator().manual_seed(1)
    for _ in range(scale.iterations):
        length = int(torch.randint(scale.longest // 8, scale.longest, (1,), generator=draw))
        tokens = torch.randint(0, VOCABULARY, (8, length), generator=draw).cuda()
        torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
        yield


def lengths(scale: Scale) -> Iterator[None]:
    """A language model on batches of varying length."""
    return _language_model(scale, recomputed=False)


def recomputation(scale: Scale) -> Iterator[None]:
    """The same with its blocks recomputed."""
    return _language_model(scale, recomputed=True)


def images(scale: Scale) -> Iterator[None]:
    """Convolutions on images of varying size."""
    width = scale.width // 8
    layers: list[torch.nn.Module] = [torch.nn.Conv2d(3, width, 7, 2, 3)]
    for _ in range(scale.layers):
        layers += [torch.nn.Conv2d(width, width, 3, padding=1), torch.nn.GroupNorm(8, width), torch.nn.GELU()]
    model = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(width, 100))
    model.to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    draw = torch.Generator().manual_seed(1)
    for _ in range(scale.iterations):
        side = 8 * int(torch.randint(scale.longest // 64, scale.longest // 16, (1,), generator=draw))
        batch = torch.randn(16, 3, side, side, generator=draw).cuda()
        model(batch).logsumexp(1).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        yield


WORKLOADS: dict[str, Callable[[Scale], Iterator[None]]] = {
    "lengths": lengths,
    "recomputation": recomputation,
    "images": images,
}
