"""Recording of what happens to memory: what stands behind torch.cuda.memory._record_memory_history()."""

from collections.abc import Sequence
from dataclasses import dataclass

from movie import _core

_STACKS = {None: "none", "state": "alloc", "alloc": "alloc", "all": "all"}
_MOST = 2**63 - 1


@dataclass
class Recording:
    """What is being recorded. `skip`: the actions that snapshots leave out."""

    enabled: str | None = None
    most: int = 0
    skip: frozenset[str] = frozenset()

    def start(
        self,
        enabled: str | None = "all",
        context: str | None = "all",
        stacks: str = "all",
        max_entries: int = _MOST,
        clear_history: bool = False,
        compile_context: bool = False,
        global_record_annotations: bool = False,
        skip_actions: Sequence[str] = (),
        *later: object,
    ) -> None:
        """Arguments as `torch._C._cuda_record_memory_history` takes them.

        Stacks are those of Python; frames of C++ are not recorded, and neither are annotations and the pinned memory of
        the host, which has an allocator of its own.
        """
        if enabled not in (None, "state", "all"):
            raise RuntimeError(f"expected enabled to be None, 'state' or 'all', got {enabled!r}")
        if context not in _STACKS:
            raise RuntimeError(f"expected context to be None, 'state', 'alloc' or 'all', got {context!r}")
        if stacks not in ("python", "all"):
            raise RuntimeError(f"expected stacks to be 'python' or 'all', got {stacks!r}")
        most = min(int(max_entries), _MOST) if enabled == "all" else 0
        keep = not clear_history and enabled is not None
        _core.torch.record_history(most, _STACKS[context] if enabled else "none", keep)
        self.enabled, self.most, self.skip = enabled, most, frozenset(skip_actions)

    def start_legacy(
        self,
        enabled: bool,
        record_context: bool = True,
        max_entries: int = 1,
        alloc_context: bool = False,
        record_context_cpp: bool = False,
        clear_history: bool = False,
        *later: object,
    ) -> None:
        """Arguments as `torch._C._cuda_record_memory_history_legacy` takes them."""
        context = ("all" if alloc_context else "state") if record_context else None
        self.start("all" if enabled else None, context, "python", max_entries, clear_history)


recording = Recording()
