"""An allocator on a model device, with an account of what the test holds."""

from movie import _core

AMPLE = 1 << 40  # bytes of a card that is never full


class Run:
    """An allocator on a model device, with the bytes in use."""

    def __init__(self, name: str, card: int = AMPLE, **options: str) -> None:
        model = _core.ModelOptions()
        model.capacity = card
        self.device = _core.ModelDevice(model)
        self.allocator = _core.make_allocator(self.device, name, options)
        self.blocks: dict[int, int] = {}
        self.in_use = self.most_in_use = 0

    def malloc(self, size: int, stream: int = 0) -> int:
        address: int = self.allocator.malloc(size, stream, 0)
        self.blocks[address] = size
        self.in_use += size
        self.most_in_use = max(self.most_in_use, self.in_use)
        return address

    def free(self, address: int) -> None:
        self.in_use -= self.blocks.pop(address)
        self.allocator.free(address)

    @property
    def reserved(self) -> int:
        return int(self.device.ledger.peak_reserved)
