"""Two kernels for programmatic dependent launch: the second may begin before the first has ended."""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

_BLOCK = 4096


@triton.jit
def _fill(out, value, size, block: tl.constexpr):
    gdc_launch_dependents()
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + at, tl.full((block,), value, tl.uint8), mask=at < size)


@triton.jit
def _copy(source, out, size, block: tl.constexpr):
    gdc_wait()
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + at, tl.load(source + at, mask=at < size), mask=at < size)


def fill(memory: torch.Tensor, value: int) -> None:
    """Writes `value` everywhere, and lets the next kernel begin as soon as all of this one have."""
    _fill[(triton.cdiv(memory.numel(), _BLOCK),)](memory, value, memory.numel(), block=_BLOCK, launch_pdl=True)


def copy(source: torch.Tensor, out: torch.Tensor) -> None:
    """Waits for what the kernel before wrote, and copies."""
    _copy[(triton.cdiv(source.numel(), _BLOCK),)](source, out, source.numel(), block=_BLOCK, launch_pdl=True)
