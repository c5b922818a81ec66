"""The workloads, captured under both kinds of segments: they run, and their traces hold (movie.capture.acceptance)."""

import pytest
from torch_build import require_cuda_torch

from movie.capture.acceptance import POINTS, REPLAY, WORKLOADS, check
from movie.capture.program import ALLOCATORS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name.replace(" ", "-"))
def test_workload(workload, allocator):
    require_cuda_torch("transformers", "peft", "deepspeed", "torchvision")
    found = check(workload, allocator)
    reference = workload.reference(allocator)
    if reference is not None:
        assert abs(found.used - reference) <= POINTS
    if allocator == "native":
        assert found.wrong == 0, "addresses that the model of native does not predict"
    assert abs(found.replayed - found.reserved) <= REPLAY
    assert found.retries == 0, "an ample card"
    assert found.good
