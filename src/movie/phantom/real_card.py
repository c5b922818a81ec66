"""Whether this machine has a card of its own. A phantom is never put in its place unasked."""

import os
from pathlib import Path

_DRIVER = Path("/proc/driver/nvidia/gpus")  # a folder for each card, made by the kernel's driver
_WSL = Path("/dev/dxg")


def has_real_card() -> bool:
    """Whether a program on this machine may see a real NVIDIA card."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return False  # hidden on purpose
    try:
        return _WSL.exists() or any(_DRIVER.iterdir())
    except OSError:
        return False
