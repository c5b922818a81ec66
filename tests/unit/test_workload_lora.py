"""Adapters that are part of the linear layers: which layers, what trains, what they compute."""

from torch_build import require_cuda_torch


def test_adapters():
    require_cuda_torch()
    import torch  # noqa: PLC0415

    from movie.workloads.lora import RANK, AdaptedLinear, adapt  # noqa: PLC0415

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = torch.nn.Module()
            self.body.layers = torch.nn.ModuleList([torch.nn.Linear(6, 4), torch.nn.Linear(4, 6, bias=False)])
            self.head = torch.nn.Linear(6, 3)

    model, x = Model(), torch.randn(5, 6)
    before = model.body.layers[0](x)
    adapt(model)
    first, second = model.body.layers
    assert isinstance(first, AdaptedLinear)
    assert isinstance(second, AdaptedLinear)
    assert type(model.head) is torch.nn.Linear
    assert {name for name, parameter in model.named_parameters() if parameter.requires_grad} == {
        f"body.layers.{number}.{factor}" for number in (0, 1) for factor in ("left", "right")
    }
    assert torch.equal(first(x), before), "an adapter begins as nothing"
    with torch.no_grad():
        first.left.normal_()
    expected = x @ (first.weight.T + first.right @ first.left / RANK) + first.bias
    assert torch.allclose(first(x), expected, atol=1e-5)
