"""A little of everything that training does on a card, with torch alone: for any version of torch, in seconds.

Prints one JSON document: the versions, and the bytes that each part had at its peak.
"""

import json
from collections.abc import Callable

import torch
import torch.distributed
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    """A decoder layer in the manner of OPT."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.after = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.before(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.relu(self.up(self.after(x))))


def transformer() -> None:
    """Half precision, lengths that vary, gradient clipping, a side stream, a copy from pinned memory."""
    model = nn.Sequential(nn.Embedding(5000, 256), *[Layer(256, 4) for _ in range(3)], nn.Linear(256, 5000))
    model = model.to("cuda", torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters())
    side = torch.cuda.Stream()
    for length in (128, 64, 200):
        tokens = torch.randint(0, 5000, (4, length)).pin_memory()
        with torch.cuda.stream(side):
            batch = tokens.to("cuda", non_blocking=True)
        torch.cuda.current_stream().wait_stream(side)
        batch.record_stream(torch.cuda.current_stream())
        loss = F.cross_entropy(model(batch).flatten(0, 1).float(), batch.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        loss.item()


def convolutions() -> None:
    """cuDNN: convolutions and batch normalization, both layouts, with and without a search, with loss scaling."""
    for layout, search in ((torch.contiguous_format, False), (torch.channels_last, True)):
        torch.backends.cudnn.benchmark = search
        model = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
            nn.ConvTranspose2d(64, 8, 2, stride=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10),
        )  # fmt: skip
        model = model.to("cuda", memory_format=layout)
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        scaler = torch.amp.GradScaler("cuda")
        for _ in range(2):
            images = torch.randn(8, 3, 48, 48, device="cuda").to(memory_format=layout)
            with torch.autocast("cuda", torch.float16):
                loss = model(images).square().mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()


def recurrent() -> None:
    """cuDNN: an LSTM over packed sequences."""
    model = nn.LSTM(32, 64, num_layers=2, dropout=0.1, bidirectional=True).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(12, 4, 32, device="cuda"), torch.tensor([12, 9, 9, 3]))
    model(packed)[0].data.sum().backward()
    optimizer.step()


def graph() -> None:
    """A whole step in a CUDA graph, replayed."""
    model = nn.Sequential(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 128)).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
    x = torch.randn(32, 128, device="cuda")

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    warm_up = torch.cuda.Stream()
    warm_up.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm_up):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(warm_up)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        step()
    for _ in range(3):
        captured.replay()
    torch.cuda.synchronize()
    captured.reset()


def collectives() -> None:
    """NCCL: rank 0 of 4, whose other ranks are not there."""
    torch.distributed.init_process_group("nccl", rank=0, world_size=4, store=torch.distributed.HashStore())
    x = torch.ones(1000, device="cuda")
    torch.distributed.all_reduce(x)
    gathered = torch.empty(4000, device="cuda")
    torch.distributed.all_gather_into_tensor(gathered, x)
    torch.distributed.reduce_scatter_tensor(x, gathered, async_op=True).wait()
    torch.cuda.synchronize()
    torch.distributed.destroy_process_group()


def main() -> None:
    torch.cuda.memory._record_memory_history()
    parts: tuple[Callable[[], None], ...] = (transformer, convolutions, recurrent, graph, collectives)
    peaks = {}
    for part in parts:
        torch.cuda.reset_peak_memory_stats()
        part()
        torch.cuda.synchronize()
        peaks[part.__name__] = torch.cuda.max_memory_allocated()
    torch.cuda.empty_cache()
    snapshot = torch.cuda.memory._snapshot()
    document = {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "card": torch.cuda.get_device_name(),
        "peaks": peaks,
        "events": sum(map(len, snapshot["device_traces"])),
    }
    print(json.dumps(document))


if __name__ == "__main__":
    main()
