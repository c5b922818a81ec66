"""Allocators for tests of tests."""

def flaws() -> list[tuple[str, int, str]]:
    """
    (name, number of the invariant that it breaks, what it does) of each broken allocator.
    """

class ReferenceControls:
    def set_capturing(self, on: bool) -> None: ...
    def pin(self, address: int) -> None: ...

def watch_reference(watch: object, flaw: str = "") -> tuple:
    """
    (allocator, controls): a simple correct allocator, or the one with that flaw, under a Watch.
    """

class Script:
    def answer(self, address: int) -> None:
        """What the next malloc() returns; 0: it runs out of memory."""

def watch_script(watch: object) -> tuple:
    """
    (allocator, script): an allocator whose answers a test gives, under a Watch.
    """
