"""Memory by the driver's calls, as torch sees it: tensors over addresses that torch did not give out."""

from types import SimpleNamespace

import torch

from movie._core import CudaDevice

MIB = 1 << 20
PAGE = 2 * MIB


class Mapped:
    """A range of addresses over handles of its own or of others. `pages`: handles, in order, all of `size` bytes."""

    def __init__(self, device: CudaDevice, pages: list[int], size: int) -> None:
        self.device, self.pages, self.size = device, pages, size
        self.bytes = size * len(pages)
        self.base = device.reserve(self.bytes)
        for index, page in enumerate(pages):
            device.map(self.base + index * size, size, page)
        device.set_access(self.base, self.bytes)

    def tensor(self, dtype: torch.dtype = torch.uint8) -> torch.Tensor:
        """All of it, as one flat tensor."""

        interface = {"shape": (self.bytes,), "typestr": "|u1", "data": (self.base, False), "version": 3}
        return torch.as_tensor(SimpleNamespace(__cuda_array_interface__=interface), device="cuda").view(dtype)

    def close(self) -> None:
        torch.cuda.synchronize()
        self.device.unmap(self.base, self.bytes)
        self.device.free_address(self.base, self.bytes)


def handles(device: CudaDevice, count: int, size: int = PAGE) -> list[int]:
    return [device.create(size) for _ in range(count)]


def release(device: CudaDevice, pages: list[int]) -> None:
    for page in pages:
        device.release(page)
