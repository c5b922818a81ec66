"""A training loop on a card that it fills: late events, side streams, out-of-memory caught, faults of the driver."""

from pathlib import Path

import pytest
from torch_child import bridge_cache, run_file

__all__ = ["bridge_cache"]  # a fixture
pytestmark = pytest.mark.slow

_PROGRAM = Path(__file__).with_name("small_training.py")
_STEPS = 12
_AMPLE = 4 << 30
_TIGHT = 1_447_483_648


def _train(**settings):
    said = run_file(_PROGRAM, [str(_STEPS)], **settings)
    assert said["done"] == _STEPS
    assert said["violations"] == 0, "no rule of the driver was broken"
    assert said["reserved"] == said["in_segments"] == said["ledger"], "each physical byte is in one segment"
    assert said["allocated"] == said["in_blocks"]
    return said


@pytest.mark.parametrize("policy", ["auto", "lean"])
def test_on_an_ample_card(policy):
    said = _train(memory=_AMPLE, lag=200, seed=1, MOVIE_POLICY=policy)
    assert said["lost"] == said["retries"] == 0
    assert not said["last_problem"]


@pytest.mark.parametrize("lag", [0, 200, -1])
def test_it_goes_on_after_running_out_of_memory(lag):
    said = _train(memory=_TIGHT, lag=lag, seed=3 if lag > 0 else 0)
    assert said["lost"] > 0
    assert said["views"]["created"] > 0


def test_the_same_through_the_bridge(bridge_cache):
    said = _train(memory=_TIGHT, lag=200, seed=3, MOVIE_BRIDGE="require", XDG_CACHE_HOME=str(bridge_cache))
    assert said["lost"] > 0


def test_with_what_others_hold_of_the_card():
    said = _train(memory=_AMPLE, MOVIE_PHANTOM_TAKEN=str(_AMPLE - _TIGHT))
    assert said["lost"] > 0


# The k-th calls that fail, early and late in the run; each function that MOVie calls more than a few times.
_FAULTS = {
    "memory": "cuMemCreate:7,cuMemCreate:200,cuMemCreate:400,cuMemRelease:3,cuMemRelease:40",
    "mapping": "cuMemMap:20,cuMemMap:250,cuMemMap:600,cuMemUnmap:1,cuMemUnmap:5,cuMemUnmap:6",
    "access": "cuMemSetAccess:5,cuMemSetAccess:40,cuMemSetAccess:41,cuMemSetAccess:90",
    "addresses": "cuMemAddressReserve:2,cuMemAddressReserve:9,cuMemAddressReserve:30,cuMemAddressFree:1",
    "order": "cudaEventRecord:3,cudaEventRecord:40,cudaStreamWaitEvent:2,cudaEventQuery:5,cudaEventSynchronize:1",
}


@pytest.mark.parametrize("what", _FAULTS)
def test_faults_of_the_driver_are_survived(what):
    said = _train(memory=_TIGHT, lag=200, seed=3, MOVIE_POLICY="lean", MOVIE_PHANTOM_FAULT=_FAULTS[what])
    assert said["last_problem"], "a fault was met"
