"""An allocator of the catalogue on a model device of its own, with the validator on."""

from movie import _core

MIB = 1 << 20
GIB = 1 << 30
NEVER = -1


class Watched:
    """The allocator `name`; `options` as in the catalogue."""

    def __init__(self, name: str, capacity: int = 80 * GIB, lag: int = 0, **options: object) -> None:
        model = _core.ModelOptions()
        model.capacity = capacity
        model.lag = lag
        self.device = _core.ModelDevice(model)
        self.watch = _core.Watch(self.device, every=1)
        self.allocator = self.watch.make(name, {key: str(value) for key, value in options.items()})

    def malloc(self, size: float, stream: int = 0, pool: int = 0) -> int:
        return self.allocator.malloc(int(size), stream, pool)

    def free(self, *addresses: int) -> None:
        for address in addresses:
            self.allocator.free(address)

    def __getitem__(self, key: str) -> int:
        return self.allocator.statistics()[key]

    @property
    def reserved(self) -> int:
        return self.device.ledger.reserved

    def calls(self, *names: str) -> int | tuple[int, ...]:
        counts = tuple(self.device.ledger.count(name) for name in names)
        return counts[0] if len(counts) == 1 else counts

    def check(self) -> None:
        self.watch.check_all()
