"""For tests that run the real PyTorch on the phantom GPU: they need a CUDA build of torch, and no GPU."""

import importlib.metadata
import importlib.util
from pathlib import Path

from missing import missing


def _missing(*packages: str) -> str | None:
    """Why tests that need torch and `packages` cannot run here; nothing is imported."""
    torch = importlib.util.find_spec("torch")
    if torch is None or torch.origin is None:
        return "torch is not installed: `make test` installs a CUDA build of it"
    if not (Path(torch.origin).parent / "lib" / "libtorch_cuda.so").is_file():
        return f"torch {importlib.metadata.version('torch')} is not a CUDA build"
    absent = [name for name in packages if importlib.util.find_spec(name) is None]
    return f"{', '.join(absent)} not installed: `make test` installs it" if absent else None


def require_cuda_torch(*packages: str) -> None:
    """Skips a test where torch's CUDA build or one of `packages` is missing; under CI=true the test fails instead."""
    reason = _missing(*packages)
    if reason is not None:
        missing(reason)
