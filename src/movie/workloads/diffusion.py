"""Training of a diffusion model on latent images whose sizes vary from batch to batch, in mixed precision.

Weights are float32, computation is bfloat16 (autocast), and a moving average of the weights is kept. Images come in
buckets: width and height in steps of 64 pixels, of an area of at most `--length` squared and sides of at most twice
that; each batch is from one bucket. Latent images have an eighth of the pixels each way, and are given, as are the
texts.
"""

import random
from collections.abc import Iterator

import torch
from torch.nn.functional import mse_loss

from movie.workloads.options import Options, draw_of, options, parser
from movie.workloads.report import report
from movie.workloads.unet import CHANNELS, WORD, WORDS, UNet

STEP = 64  # pixels
LATENT = 8  # pixels each way that become one
NARROWEST = 256  # pixels, for images of 512 and more
DECAY = 0.9999


def buckets(side: int) -> list[tuple[int, int]]:
    """Widths and heights in pixels: for each width the greatest height that the area allows."""
    least = min(NARROWEST, side)
    widths = range(least, 2 * side + 1, STEP)
    found = [(width, min(side * side // width // STEP * STEP, 2 * side)) for width in widths]
    return [(width, height) for width, height in found if height >= least]


def sizes(chosen: Options, draw: random.Random) -> Iterator[tuple[int, int]]:
    """The size of each batch's latent images."""
    for _ in range(chosen.iterations):
        width, height = (
            (chosen.length, chosen.length) if chosen.lengths == "fix" else draw.choice(buckets(chosen.length))
        )
        yield width // LATENT, height // LATENT


def train(chosen: Options) -> None:
    torch.manual_seed(chosen.seed)
    with torch.device("cuda"):
        model = UNet(chosen.model, chosen.recompute)
    parameters = list(model.parameters())
    averages = [parameter.detach().clone() for parameter in parameters]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4)
    for width, height in sizes(chosen, draw_of(chosen)):
        images = torch.randn(chosen.batch, CHANNELS, height, width, device="cuda")
        text = torch.randn(chosen.batch, WORDS, WORD, device="cuda")
        noise, share = torch.randn_like(images), torch.rand(chosen.batch, device="cuda")
        mixed = images * share.sqrt()[:, None, None, None] + noise * (1 - share).sqrt()[:, None, None, None]
        with torch.autocast("cuda", torch.bfloat16):
            foretold = model(mixed, share * 1000, text)
        loss = mse_loss(foretold.float(), noise)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            torch._foreach_lerp_(averages, parameters, 1 - DECAY)
        del images, text, noise, share, mixed, foretold, loss


if __name__ == "__main__":
    chosen = options(parser(__doc__, model="unet-sd1.5", batch=8, length=512).parse_args())
    train(chosen)
    report(f"{chosen.model} {chosen.strategy}")
