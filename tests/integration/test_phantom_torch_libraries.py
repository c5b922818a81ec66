"""The real PyTorch on the phantom's libraries: what goes through cuBLAS, cuDNN, NCCL, Triton and CUDA graphs."""

import json
from pathlib import Path

import pytest
from phantom_child import output_on_phantom, run_on_phantom
from torch_build import require_cuda_torch

pytestmark = pytest.mark.slow

_SMALL_TRAINING = Path(__file__).parent / "phantom_scripts/small_training.py"
_MIB = 1 << 20
ALLOCATORS = {"native": "expandable_segments:False", "expandable": "expandable_segments:True"}


def _run(code: str, allocator: str = "native", **settings: object) -> str:
    return output_on_phantom(code, PYTORCH_CUDA_ALLOC_CONF=ALLOCATORS[allocator], **settings)


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_a_little_of_everything(allocator: str) -> None:
    require_cuda_torch()
    document = json.loads(_run(_SMALL_TRAINING.read_text(), allocator).splitlines()[-1])
    assert document["card"] == "NVIDIA A100-SXM4-80GB"
    assert set(document["peaks"]) == {"transformer", "convolutions", "recurrent", "graph", "collectives"}
    # Weights, gradients, two moments of the transformer in half precision, and its activations.
    assert 30 * _MIB < document["peaks"]["transformer"] < 200 * _MIB
    assert all(peak > 0 for peak in document["peaks"].values())
    assert document["events"] > 1000


RESNET = """
import json, sys, torch, torchvision
from torch.profiler import ProfilerActivity, profile

layout, search = (torch.channels_last if sys.argv[1] == "last" else torch.contiguous_format), sys.argv[2] == "search"
torch.backends.cudnn.benchmark = search
torch.backends.cudnn.enabled = sys.argv[3] == "cudnn"
model = torchvision.models.resnet50().to("cuda", memory_format=layout)
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
with profile(activities=[ProfilerActivity.CPU]) as seen:
    for _ in range(3):
        images = torch.randn(8, 3, 224, 224, device="cuda").to(memory_format=layout)
        with torch.autocast("cuda", torch.float16):
            loss = torch.nn.functional.cross_entropy(model(images), torch.zeros(8, dtype=torch.long, device="cuda"))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
torch.cuda.synchronize()
names = sorted({event.name for event in seen.events() if "cudnn" in event.name})
print(json.dumps({"peak": torch.cuda.max_memory_allocated(), "names": names}))
"""


def _resnet(allocator: str, *arguments: str) -> tuple[int, list[str]]:
    document = json.loads(_run(RESNET, allocator, arguments=arguments).splitlines()[-1])
    return document["peak"], document["names"]


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_resnet_50_trains_through_cudnn(allocator: str) -> None:
    require_cuda_torch("torchvision")
    peak, names = _resnet(allocator, "first", "plain", "cudnn")
    assert "aten::cudnn_convolution" in names
    assert "aten::cudnn_batch_norm" in names
    # Parameters, gradients and momenta take 293 MiB, the activations of each image 40 MiB or somewhat more.
    assert (293 + 8 * 40) * _MIB < peak < (293 + 8 * 80) * _MIB


def test_resnet_50_searches_for_plans_and_takes_both_layouts() -> None:
    require_cuda_torch("torchvision")
    planned, _ = _resnet("native", "first", "plain", "cudnn")
    searched, _ = _resnet("native", "first", "search", "cudnn")
    channels_last, names = _resnet("native", "last", "plain", "cudnn")
    without, no_names = _resnet("native", "first", "plain", "none")
    assert searched >= planned
    assert channels_last < planned, "no copies with channels last are needed"
    assert "aten::cudnn_convolution" in names
    assert no_names == []
    assert without > 0


def test_a_convolution_without_room_for_its_workspace_takes_another_plan() -> None:
    """Input and output take 800 MiB of the 1,300 that torch may have; the fast plan would want 800 more."""
    require_cuda_torch()
    code = """
import torch
model = torch.nn.Conv2d(64, 64, 3, padding=1, bias=False, device="cuda", dtype=torch.bfloat16)
x = torch.randn(50, 64, 256, 256, device="cuda", dtype=torch.bfloat16)
total = torch.cuda.get_device_properties(0).total_memory
torch.cuda.set_per_process_memory_fraction({room} * 2**20 / total)
torch.cuda.reset_peak_memory_stats()
with torch.no_grad():
    y = model(x)
print(torch.cuda.max_memory_allocated() >> 20, y.nbytes >> 20)
"""
    tight, size = map(int, _run(code.format(room=1300)).split())
    ample, _ = map(int, _run(code.format(room=4000)).split())
    assert size == 400
    assert 800 <= tight < 900
    assert 1600 <= ample < 1700


def test_an_lstm_keeps_its_weights_in_one_piece() -> None:
    require_cuda_torch()
    code = """
import torch
model = torch.nn.LSTM(64, 128, num_layers=2, bidirectional=True).cuda()
ranges = sorted((p.data_ptr(), p.data_ptr() + p.nbytes) for p in model.parameters())
print(all(end == start for (_, end), (start, _) in zip(ranges, ranges[1:])))
x = torch.randn(20, 8, 64, device="cuda", requires_grad=True)
model(x)[0].sum().backward()
print(tuple(x.grad.shape), all(p.grad is not None for p in model.parameters()))
for other in (torch.nn.LSTM(64, 128, proj_size=32), torch.nn.GRU(64, 32), torch.nn.RNN(64, 32, bias=False)):
    y, _ = other.cuda()(x)
    y.sum().backward()
    print(y.shape[2])
torch.cuda.synchronize()
"""
    assert _run(code).split("\n")[:5] == ["True", "(20, 8, 64) True", "32", "32", "32"]


def test_the_rest_of_cudnn_that_torch_calls() -> None:
    """The CTC loss and spatial transformers, through cuDNN by the names of the operators that ran."""
    require_cuda_torch()
    code = """
import torch, torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile
scores = torch.randn(50, 4, 20, device="cuda", requires_grad=True)
labels = torch.ones(40, dtype=torch.int32, device="cuda")
lengths = [torch.full((4,), length, dtype=torch.int32, device="cuda") for length in (50, 10)]
theta, images = torch.randn(2, 2, 3, device="cuda", requires_grad=True), torch.randn(2, 3, 8, 8, device="cuda")
with profile(activities=[ProfilerActivity.CPU]) as seen:
    F.ctc_loss(scores.log_softmax(2), labels, *lengths).backward()
    F.grid_sample(images, F.affine_grid(theta, (2, 3, 8, 8), align_corners=True), align_corners=True).sum().backward()
torch.cuda.synchronize()
print(*sorted({event.name for event in seen.events() if "cudnn_" in event.name}))
"""
    ran = _run(code).split()
    assert {"aten::_cudnn_ctc_loss", "aten::cudnn_grid_sampler", "aten::cudnn_grid_sampler_backward"} <= set(ran)


def test_attention_takes_the_backend_that_the_card_would_take() -> None:
    """cuDNN's attention where it is asked for, with a backward pass; which one is chosen freely depends on the card."""
    require_cuda_torch()
    code = """
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as attention
q = torch.randn(2, 8, 256, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
print(SDPBackend(torch._fused_sdp_choice(q, q, q, is_causal=True)).name)
with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
    y = attention(q, q, q, is_causal=True)
y.sum().backward()
print(type(y.grad_fn).__name__, tuple(q.grad.shape))
torch.cuda.synchronize()
"""
    chosen = {card: _run(code, card=card).splitlines() for card in ("a100-80", "h100")}
    assert chosen["a100-80"][0] == "FLASH_ATTENTION"
    assert chosen["h100"][0] == "CUDNN_ATTENTION"
    for lines in chosen.values():
        assert "CudnnAttention" in lines[1]
        assert lines[1].endswith("(2, 8, 256, 64)")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for compiled kernels, so that what one allocator's run compiles the other's need not."""
    return tmp_path_factory.mktemp("compiled")


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_a_compiled_model_of_six_layers_trains(allocator: str, compiled: Path) -> None:
    require_cuda_torch("triton")
    code = """
import torch
layers = [torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, device="cuda") for _ in range(6)]
model = torch.compile(torch.nn.Sequential(*layers))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    model(torch.randn(4, 64, 256, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
print(torch._dynamo.utils.counters["stats"]["unique_graphs"])
"""
    caches = {"TORCHINDUCTOR_CACHE_DIR": str(compiled / "inductor"), "TRITON_CACHE_DIR": str(compiled / "triton")}
    assert int(_run(code, allocator, **caches).split()[-1]) >= 1
    assert len(list(compiled.rglob("*.cubin"))) > 5, "Triton compiled kernels for the card"


def test_kernels_that_torch_compiles_as_it_goes_need_no_driver() -> None:
    """NVRTC stays NVIDIA's own, and asks the driver for private functions that the phantom has not."""
    require_cuda_torch()
    code = """
import torch
x = torch.ones(4, device="cuda", dtype=torch.complex64)
print(x.abs().shape, torch.cuda.jiterator._create_jit_fn("template <typename T> T f(T x) { return x * x; }")(x).shape)
"""
    assert _run(code).split() == ["torch.Size([4])", "torch.Size([4])"]


@pytest.mark.parametrize(
    ("call", "function"),
    [
        ("torch.fft.fft(torch.randn(8, 8, device='cuda'))", "cufft"),
        ("torch.linalg.cholesky(torch.eye(8, device='cuda'))", "cusolver"),
        ("torch.linalg.svd(torch.randn(8, 8, device='cuda'))", "cusolver"),
    ],
)
def test_libraries_that_the_phantom_has_not_stop_the_run(call: str, function: str) -> None:
    require_cuda_torch()
    result = run_on_phantom(f"import torch\n{call}\nprint('went on')")
    assert result.returncode == 97, result.stderr
    assert f"phantom: {function}" in result.stderr
    assert "went on" not in result.stdout


def test_a_profile_has_the_cpus_side_and_says_why_not_the_cards() -> None:
    require_cuda_torch()
    code = """
import torch
from torch.profiler import ProfilerActivity, profile
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
    torch.ones(8, device="cuda").sum().item()
print("aten::sum" in {event.name for event in seen.events()})
"""
    result = run_on_phantom(code)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split()[-1] == "True"
    assert "INSUFFICIENT_PRIVILEGES" in result.stderr


def test_versions_are_those_of_the_wheel() -> None:
    require_cuda_torch()
    code = """
import torch
print(torch.cuda.nccl.version() >= (2, 20), torch.backends.cudnn.version() >= 90000)
print(torch.backends.cudnn.is_available())
"""
    assert _run(code).split() == ["True", "True", "True"]
