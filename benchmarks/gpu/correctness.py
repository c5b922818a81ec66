"""Whether what MOVie relies on holds on this card. Run with MOVie enabled and without it; `run.py` compares the two."""

from typing import Any

import torch
from raw_memory import MIB, PAGE, Mapped, handles, release

import movie
from movie._core import CudaDevice


def losses() -> list[float]:
    """Of a small model trained on batches of varying length; the same under any allocator."""
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True, warn_only=True)
    model = torch.nn.Sequential(
        torch.nn.Embedding(1000, 256),
        torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(256, 4, 1024, 0.0, batch_first=True), 3),
        torch.nn.Linear(256, 1000),
    ).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    draw = torch.Generator().manual_seed(1)
    found = []
    for _ in range(30):
        length = int(torch.randint(16, 400, (1,), generator=draw))
        tokens = torch.randint(0, 1000, (8, length), generator=draw).cuda()
        loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.item())
    return found


def patterns_in_views() -> int:
    """Bytes that are wrong after blocks with patterns of their own came and went, many of them in views."""
    draw = torch.Generator().manual_seed(2)
    held: list[tuple[torch.Tensor, int]] = []
    wrong = 0
    for step in range(400):
        if len(held) > 20:
            block, value = held.pop(int(torch.randint(len(held), (1,), generator=draw)))
            wrong += int((block != value).sum())
        size = int(torch.randint(1, 24 * MIB, (1,), generator=draw))
        block = torch.full((size,), step % 251, dtype=torch.uint8, device="cuda")
        held.append((block, step % 251))
    return wrong + sum(int((block != value).sum()) for block, value in held)


def graph_replays() -> bool:
    """Whether a graph's memory is its own while eager work goes on."""
    static = torch.ones(MIB, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = (static * 3 + 1).cumsum(0)
    good = True
    for step in range(10):
        eager = [torch.full((3 * MIB + step,), 5.0, device="cuda") for _ in range(8)]
        static.fill_(step)
        graph.replay()
        good &= bool(result[0] == 3 * step + 1) and all(bool((block == 5).all()) for block in eager)
    return good


def side_streams() -> int:
    """Bytes that are wrong where a second stream reads blocks that the first has freed."""
    side, wrong = torch.cuda.Stream(), 0
    for step in range(100):
        block = torch.full((4 * MIB + step,), step % 251, dtype=torch.uint8, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(200_000)
            copy = block.clone()
        block.record_stream(side)
        del block
        torch.full((4 * MIB + step,), 255, dtype=torch.uint8, device="cuda")
        side.synchronize()
        wrong += int((copy != step % 251).sum())
    return wrong


def aliases() -> int:
    """Bytes that are wrong where one stream writes at a page's home and another, after an event, reads in a view."""
    device = CudaDevice(0)
    pages = handles(device, 32)
    home, view = Mapped(device, pages, PAGE), Mapped(device, pages[::-1], PAGE)
    side, wrong = torch.cuda.Stream(), 0
    at_home, in_view = home.tensor(), view.tensor()
    for step in range(50):
        at_home.fill_(step)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            wrong += int((in_view != step).sum())
        torch.cuda.current_stream().wait_stream(side)
    home.close()
    view.close()
    release(device, pages)
    return wrong


def aliases_of_dependent_launches() -> int | str:
    """Bytes that are wrong where a kernel writes at a page's home, and the next one, which is launched before that has
    ended and waits for its writes alone, reads in a view. Or why that was not tried.

    Until a card says 0 here MOVie takes pages at the ends of blocks for foreign under such launches.
    """
    if torch.cuda.get_device_capability() < (9, 0):
        return "needs a card of compute capability 9.0"
    try:
        from dependent_launches import copy, fill  # noqa: PLC0415 - needs a triton that knows of such launches
    except (ImportError, AttributeError) as error:
        return f"this triton has no dependent launches: {error}"
    device = CudaDevice(0)
    pages = handles(device, 32)
    home, view = Mapped(device, pages, PAGE), Mapped(device, pages[::-1], PAGE)
    at_home, in_view = home.tensor(), view.tensor()
    read = torch.empty_like(in_view)
    wrong = 0
    for step in range(50):
        fill(at_home, step)
        copy(in_view, read)
        wrong += int((read != step).sum())
    home.close()
    view.close()
    release(device, pages)
    return wrong


def main() -> dict[str, Any]:
    found = {
        "losses": losses(),
        "wrong_bytes_in_views": patterns_in_views(),
        "wrong_bytes_on_side_streams": side_streams(),
        "wrong_bytes_through_aliases": aliases(),
        "graphs_are_whole": graph_replays(),
        "bytes_wrong_under_dependent_launches": aliases_of_dependent_launches(),
    }
    if movie.enabled():
        found["views"] = movie._core.torch.views(0)
    return found
