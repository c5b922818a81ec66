"""The network of a diffusion model: a UNet over latent images, with attention to itself and to a text.

Widths and depths of `unet-sd1.5` are Stable Diffusion 1.5's. Plain PyTorch.
"""

from typing import Any

import torch
from torch import nn
from torch.nn.functional import gelu, interpolate, scaled_dot_product_attention, silu
from torch.utils.checkpoint import checkpoint

CHANNELS = 4  # of a latent image
WORDS, WORD = 77, 768  # of the text: tokens, and how wide each is
_HEADS = 8
_GROUPS = 32
SHAPES = {"unet-small": (128, 256, 512, 512), "unet-sd1.5": (320, 640, 1280, 1280)}


class Residual(nn.Module):
    """Two convolutions, told the time in between."""

    def __init__(self, inputs: int, outputs: int, time: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(_GROUPS, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1))
        self.time = nn.Linear(time, outputs)
        self.second = nn.Sequential(
            nn.GroupNorm(_GROUPS, outputs), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, padding=1)
        )
        self.past = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Any, time: Any) -> Any:
        return self.past(x) + self.second(self.first(x) + self.time(silu(time))[:, :, None, None])


class Attention(nn.Module):
    """Of (batch, places, width) to (batch, other places, other width)."""

    def __init__(self, width: int, other: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key, self.value = nn.Linear(other, width, bias=False), nn.Linear(other, width, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, x: Any, other: Any) -> Any:
        heads = [
            part.unflatten(-1, (_HEADS, -1)).transpose(1, 2)
            for part in (self.query(x), self.key(other), self.value(other))
        ]
        return self.out(scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    """Each place of an image looks at all others, then at the text, then is worked on by itself."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.itself, self.text = Attention(width, width), Attention(width, WORD)
        self.widen, self.narrow = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, image: Any, text: Any) -> Any:
        x = image.flatten(2).transpose(1, 2)
        normed = self.norms[0](x)
        x = x + self.itself(normed, normed)
        x = x + self.text(self.norms[1](x), text)
        value, gate = self.widen(self.norms[2](x)).chunk(2, dim=-1)
        x = x + self.narrow(value * gelu(gate))
        return x.transpose(1, 2).unflatten(2, image.shape[2:])


class Block(nn.Module):
    """A residual block, and a transformer where `attends`."""

    def __init__(self, inputs: int, outputs: int, time: int, attends: bool) -> None:
        super().__init__()
        self.residual = Residual(inputs, outputs, time)
        self.transformer = Transformer(outputs) if attends else None

    def forward(self, x: Any, time: Any, text: Any) -> Any:
        x = self.residual(x, time)
        return x if self.transformer is None else self.transformer(x, text)


class UNet(nn.Module):
    """`forward` foretells the noise in latent images of any size that 8 divides. `recompute`: keep only blocks'
    inputs."""

    def __init__(self, name: str, recompute: bool) -> None:
        super().__init__()
        if name not in SHAPES:
            raise SystemExit(f"no UNet is called {name!r}: there are {', '.join(SHAPES)}")
        widths = SHAPES[name]
        self.recompute, self.width = recompute, widths[0]
        time = 4 * widths[0]
        self.time = nn.Sequential(nn.Linear(widths[0], time), nn.SiLU(), nn.Linear(time, time))
        self.begin = nn.Conv2d(CHANNELS, widths[0], 3, padding=1)
        self.down, self.shrink = nn.ModuleList(), nn.ModuleList()
        kept, at, lowest = [widths[0]], widths[0], len(widths) - 1
        for level, width in enumerate(widths):
            self.down.append(
                nn.ModuleList(Block(at if not number else width, width, time, level < lowest) for number in range(2))
            )
            kept += [width, width]
            at = width
            if level < lowest:
                self.shrink.append(nn.Conv2d(width, width, 3, stride=2, padding=1))
                kept.append(width)
        self.middle = nn.ModuleList((Block(at, at, time, True), Block(at, at, time, False)))
        self.up, self.grow = nn.ModuleList(), nn.ModuleList()
        for level, width in reversed(list(enumerate(widths))):
            blocks = nn.ModuleList()
            for _ in range(3):
                blocks.append(Block(at + kept.pop(), width, time, level < lowest))
                at = width
            self.up.append(blocks)
            if level:
                self.grow.append(nn.Conv2d(width, width, 3, padding=1))
        self.end = nn.Sequential(nn.GroupNorm(_GROUPS, at), nn.SiLU(), nn.Conv2d(at, CHANNELS, 3, padding=1))

    def forward(self, images: Any, times: Any, text: Any) -> Any:
        """(batch, 4, height, width), (batch,), (batch, 77, 768) -> as the images."""
        rates = torch.arange(self.width // 2, device=images.device) * (-9.21 / (self.width // 2))
        angles = times[:, None] * rates.exp()
        time = self.time(torch.cat((angles.sin(), angles.cos()), dim=-1))
        x = self.begin(images)
        kept = [x]
        for level, blocks in enumerate(self.down):
            for block in blocks:
                x = self._through(block, x, time, text)
                kept.append(x)
            if level < len(self.shrink):
                x = self.shrink[level](x)
                kept.append(x)
        for block in self.middle:
            x = self._through(block, x, time, text)
        for level, blocks in enumerate(self.up):
            for block in blocks:
                x = self._through(block, torch.cat((x, kept.pop()), dim=1), time, text)
            if level < len(self.grow):
                x = self.grow[level](interpolate(x, scale_factor=2.0, mode="nearest"))
        return self.end(x)

    def _through(self, block: Any, x: Any, time: Any, text: Any) -> Any:
        return checkpoint(block, x, time, text, use_reentrant=False) if self.recompute else block(x, time, text)
