"""What a workload says at its end: one line, the same for all."""

import torch


def report(name: str) -> None:
    """Peaks of the current card, in GiB: what tensors took, what was reserved for them, and the retries it took."""
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    active, reserved = stats["active_bytes.all.peak"], stats["reserved_bytes.all.peak"]
    print(
        f"{name}: active {active / 2**30:.2f} GiB, reserved {reserved / 2**30:.2f} GiB, "
        f"used {active / reserved:.1%}, retries {stats['num_alloc_retries']}",
        flush=True,
    )
