"""A card runs the newest code in torch's wheel that it can, and none where there is none, as a real one."""

import pytest
from phantom_child import run_on_phantom
from torch_build import require_cuda_torch

pytestmark = pytest.mark.slow

# The gradient of an embedding sorts on the card: the sort looks for what its kernels were compiled for.
TRAINING = """
    import torch
    compiled = [name.removeprefix("sm_") for name in torch.cuda.get_arch_list() if name.startswith("sm_")]
    major, minor = torch.cuda.get_device_capability()
    print(any(int(name[:-1]) == major and int(name[-1]) <= minor for name in compiled if name.isdecimal()))
    embedding = torch.nn.Embedding(32000, 256, device="cuda")
    embedding(torch.randint(0, 32000, (8, 1024), device="cuda")).sum().backward()
    print("trained")
"""


@pytest.fixture(autouse=True)
def _needs_torch():
    require_cuda_torch()


@pytest.mark.parametrize("card", ["t4", "a100-40", "rtx3060", "rtx4090", "l4", "h100", "b200", "rtx5090", "v100-32"])
def test_the_gradient_of_an_embedding(card):
    result = run_on_phantom(TRAINING, card=card)
    supported, *rest = result.stdout.splitlines()
    if supported == "True":
        assert rest == ["trained"], result.stderr[-2000:]
    else:
        assert result.returncode != 0  # 1, or PyTorch's backward thread aborts while the interpreter ends
        assert "NoKernelImageForDevice" in result.stderr
