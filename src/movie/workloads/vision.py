"""Training of a ResNet from torchvision with varying image sizes, in mixed precision, convolutions by cuDNN."""

import random

import torch
import torchvision

from movie.workloads.options import Options, options, parser
from movie.workloads.report import report

_STEP = 32  # pixels: sizes are multiples


def train(chosen: Options) -> None:
    model = (
        torchvision.models.get_model(chosen.model, weights=None).cuda().to(memory_format=torch.channels_last).train()
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda")
    criterion = torch.nn.CrossEntropyLoss()
    draw = random.Random(chosen.seed)
    for _ in range(chosen.iterations):
        side = draw.randrange(128, chosen.length + 1, _STEP) if chosen.lengths == "var" else chosen.length
        images = torch.randn(chosen.batch, 3, side, side, device="cuda").to(memory_format=torch.channels_last)
        labels = torch.randint(0, 1000, (chosen.batch,), device="cuda")
        with torch.autocast("cuda", torch.float16):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        del images, labels, loss


if __name__ == "__main__":
    chosen = options(parser(__doc__, model="resnet50", batch=64, length=384, iterations=20).parse_args())
    train(chosen)
    report(f"{chosen.model} {chosen.strategy}")
