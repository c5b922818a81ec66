"""The CUDA device against the phantom, which enforces the driver's rules: no torch is needed."""

import json

import pytest
from phantom_child import run_on_phantom

_PREAMBLE = """
import ctypes, json, threading
from movie import _core
from movie._core import CudaDevice

MIB = 1 << 20
cuda = ctypes.CDLL(None)

def counters():
    size = cuda.movie_phantom_counters(None, ctypes.c_size_t(0)) + 1
    text = ctypes.create_string_buffer(size)
    cuda.movie_phantom_counters(text, ctypes.c_size_t(size))
    return json.loads(text.value)

def failure(call, *arguments):
    try:
        call(*arguments)
    except _core.DriverFailure as error:
        return str(error)
    return "no failure"

def say(*things):
    print(json.dumps([*things, counters()["violations"]]))
"""


def _said(code, violations=0, **settings):
    """What `say` said, without the violations of rules, which are as many as given."""
    result = run_on_phantom(_PREAMBLE + code, **settings)
    assert result.returncode == 0, result.stderr[-3000:]
    *said, broken = json.loads(result.stdout.splitlines()[-1])
    assert broken == violations
    return said


def test_memory_is_created_mapped_and_given_back():
    said = _said("""
device = CudaDevice()
free = device.free_bytes
base = device.reserve(8 * MIB)
handles = [device.create(2 * MIB) for _ in range(4)]
for i, handle in enumerate(handles):
    device.map(base + 2 * i * MIB, 2 * MIB, handle)
device.set_access(base, 8 * MIB)
taken = free - device.free_bytes
device.unmap(base, 8 * MIB)
for handle in handles:
    device.release(handle)
device.free_address(base, 8 * MIB)
ledger = device.ledger
say(device.granularity, base % (32 * MIB), taken, free - device.free_bytes, ledger.reserved, ledger.peak_reserved,
    ledger.count("create"), device.last_problem())
""")
    assert said == [2 << 20, 0, 8 << 20, 0, 0, 8 << 20, 4, ""]


def test_one_page_at_two_addresses():
    said = _said(
        """
device = CudaDevice()
home, view = device.reserve(2 * MIB), device.reserve(2 * MIB)
handle = device.create(2 * MIB)
for address in (home, view):
    device.map(address, 2 * MIB, handle)
    device.set_access(address, 2 * MIB)
assert cuda.cudaMemset(ctypes.c_void_p(home), 7, ctypes.c_size_t(1000)) == 0
seen = (ctypes.c_ubyte * 1000)()
assert cuda.cudaMemcpy(seen, ctypes.c_void_p(view), ctypes.c_size_t(1000), 2) == 0
say(sum(seen))
""",
        MOVIE_PHANTOM_BYTES="1",
    )
    assert said == [7000]


def test_fresh_ranges_keep_their_distance():
    said = _said("""
device = CudaDevice()
ranges = sorted(device.reserve(2 * MIB) for _ in range(8))
say(min(after - before for before, after in zip(ranges, ranges[1:])))
""")
    assert said[0] >= 64 << 20


def test_a_full_card_is_out_of_memory():
    said = _said(
        """
device = CudaDevice()
held = [device.create(device.free_bytes // (2 * MIB) * (2 * MIB))]
say(failure(device.create, 2 * MIB), device.last_problem(), device.ledger.count("create"))
""",
        memory=1 << 30,
    )
    assert said == ["out of memory", "cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY (out of memory)", 2]


@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("cuMemAddressReserve", "device.reserve, 2 * MIB"),
        ("cuMemCreate", "device.create, 2 * MIB"),
        ("cuMemMap", "device.map, spare, 2 * MIB, handle"),
        ("cuMemSetAccess", "device.set_access, base, 2 * MIB"),
        ("cuMemUnmap", "device.unmap, base, 2 * MIB"),
        ("cudaEventRecord", "device.event_record, 0"),
        ("cudaStreamWaitEvent", "device.stream_wait, 0, event"),
    ],
)
def test_a_call_that_fails_changes_nothing(function, call):
    """The second call of each function fails; the third does what the second should have done."""
    said = _said(
        f"""
device = CudaDevice()
base, handle = device.reserve(2 * MIB), device.create(2 * MIB)
event = device.event_record()
device.map(base, 2 * MIB, handle)
device.set_access(base, 2 * MIB)
device.stream_wait(0, event)
first = {function in ("cuMemUnmap",)} and (device.unmap(base, 2 * MIB), device.map(base, 2 * MIB, handle))
spare = base if {function == "cuMemMap"} else 0
if spare:
    device.unmap(base, 2 * MIB)
reserved = device.ledger.reserved
outcomes = [failure({call}), device.last_problem()]
unchanged = device.ledger.reserved == reserved
say(*outcomes, unchanged, failure({call}))
""",
        MOVIE_PHANTOM_FAULT=f"{function}:2",
    )
    failed, problem, unchanged, again = said
    assert failed in ("failed", "out of memory", "out of addresses")
    assert problem.startswith(function.replace("cudaEvent", "cuEvent").replace("cudaStream", "cuStream"))
    assert unchanged
    assert again == "no failure"


def test_events_follow_their_streams():
    said = _said(
        """
device = CudaDevice()
stream = ctypes.c_void_p()
cuda.cudaStreamCreateWithFlags(ctypes.byref(stream), 1)
cuda.cudaMemsetAsync(ctypes.c_void_p(device.malloc(MIB)), 1, ctypes.c_size_t(MIB), stream)
event = device.event_record(stream.value)
before = device.event_query(event)
device.event_synchronize(event)
say(before, device.event_query(event), cuda.cudaGetLastError())
""",
        lag=-1,
    )
    assert said == [False, True, 0]


def test_threads_without_a_context_and_in_another_ones():
    said = _said(
        """
devices = [CudaDevice(0), CudaDevice(1)]
outcomes = []
def work(current):
    if current is not None:
        cuda.cudaSetDevice(current)
    for device in devices:
        base, handle = device.reserve(2 * MIB), device.create(2 * MIB)
        device.map(base, 2 * MIB, handle)
        device.set_access(base, 2 * MIB)
        device.event_synchronize(device.event_record())
    now = ctypes.c_int()
    cuda.cudaGetDevice(ctypes.byref(now))
    outcomes.append([current, now.value])
for current in (None, 0, 1):
    thread = threading.Thread(target=work, args=(current,))
    thread.start()
    thread.join()
say(outcomes, [device["used"] for device in counters()["devices"]])
""",
        count=2,
    )
    outcomes, used = said
    assert outcomes == [[None, 0], [0, 0], [1, 1]], "the thread's own device is as it was"
    assert used == [6 << 20, 6 << 20], "each device has its own memory"


def test_peers_reach_what_is_mapped_before_and_after():
    said = _said(
        """
here, there = CudaDevice(0), CudaDevice(1)
def mapped():
    base, handle = here.reserve(2 * MIB), here.create(2 * MIB)
    here.map(base, 2 * MIB, handle)
    here.set_access(base, 2 * MIB)
    return base
before = mapped()
added = here.add_peer(there)
after = mapped()
calls = here.ledger.count("set_access")
here.add_peer(there)
say(added, calls, here.ledger.count("set_access"))
""",
        count=2,
    )
    assert said == [True, 3, 3]


def test_memory_is_obtained_while_another_thread_captures():
    """In the strictest mode of capture, too."""
    said = _said("""
device = CudaDevice()
stream = ctypes.c_void_p()
cuda.cudaStreamCreateWithFlags(ctypes.byref(stream), 1)
assert cuda.cudaStreamBeginCapture(stream, 0) == 0
def work():
    base, handle = device.reserve(2 * MIB), device.create(2 * MIB)
    device.map(base, 2 * MIB, handle)
    device.set_access(base, 2 * MIB)
thread = threading.Thread(target=work)
thread.start()
thread.join()
graph = ctypes.c_void_p()
say(cuda.cudaStreamEndCapture(stream, ctypes.byref(graph)), device.ledger.reserved)
""")
    assert said == [0, 2 << 20]


def test_the_allocator_runs_on_it_under_the_strict_rules():
    said = _said(
        """
import random
device = CudaDevice()
allocator = _core.make_allocator(device, "movie-lean", {})
draw, held = random.Random(5), []
for step in range(3000):
    if held and (len(held) > 25 or draw.random() < 0.45):
        allocator.free(held.pop(draw.randrange(len(held))))
    else:
        try:
            held.append(allocator.malloc(draw.choice([700, 300_000, 3 * MIB, 9 * MIB, 31 * MIB])))
        except _core.OutOfMemory:
            allocator.free(held.pop())
for address in held:
    allocator.free(address)
views = allocator.views()
allocator.empty_cache()
say(device.ledger.reserved, views["created"] > 0)
""",
        memory=(1 << 30),
    )
    assert said == [0, True]


def test_no_such_device():
    result = run_on_phantom("from movie._core import CudaDevice\nCudaDevice(3)")
    assert "CudaUnavailable: there is no CUDA device 3" in result.stderr
