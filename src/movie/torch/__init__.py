"""MOVie inside PyTorch: `movie.enable()` makes it the allocator of every CUDA tensor of this process."""

from movie.torch.config import Config
from movie.torch.enable import EnableError, bridged, enable, enabled

__all__ = ["Config", "EnableError", "bridged", "enable", "enabled"]
