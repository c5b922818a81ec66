"""The models of the workloads have the sizes that their names promise."""

import pytest
from torch_build import require_cuda_torch

BILLIONS = {
    "opt-125m": 0.125,
    "opt-350m": 0.331,
    "opt-1.3b": 1.3,
    "opt-2.7b": 2.65,
    "opt-6.7b": 6.65,
    "opt-13b": 12.85,
    "tinyllama-1.1b": 1.1,
    "mobilellm-125m": 0.125,
    "mobilellm-350m": 0.345,
    "mobilellm-1b": 1.0,
    "vicuna-13b": 13.0,
    "llama3-8b": 8.0,
    "codegen-350m": 0.35,
    "codegen-2b": 2.7,
    "codegen-6b": 7.0,
    "codegen2-1b": 1.0,
    "codegen2-3.7b": 3.7,
    "gpt-neox-20b": 20.5,
    "llama3.2-1b": 1.24,
    "qwen2-0.5b": 0.494,
    "qwen2-1.5b": 1.5,
    "qwen2-7b": 7.6,
}


def test_sizes():
    require_cuda_torch("transformers", "peft")
    import torch  # noqa: PLC0415

    from movie.workloads import models  # noqa: PLC0415

    assert set(models.model_names()) == set(BILLIONS)
    found = {}
    for name in models.model_names():
        with torch.device("meta"):
            found[name] = sum(parameter.numel() for parameter in models.build(name).parameters()) / 1e9
    assert found == pytest.approx(BILLIONS, rel=0.06)


def test_an_unknown_model():
    require_cuda_torch("transformers", "peft")
    from movie.workloads import models  # noqa: PLC0415

    with pytest.raises(SystemExit, match=r"opt-1\.3b"):
        models.build("opt-1.4b")
