"""Captures on the phantom card: how they spread, what breaks them, and the graphs that come of them."""

from phantom_calls import output

BEGIN = """
GLOBAL, THREAD, RELAXED = 0, 1, 2
NONE, ACTIVE, INVALID_CAPTURE = 0, 1, 2

def state(on):
    out = c_int()
    code = do("cudaStreamIsCapturing", on, byref(out))
    return code or out.value

def end(on):
    graph = c_uint64()
    return do("cudaStreamEndCapture", on, byref(graph)), graph.value

def nodes(graph):
    count = c_size_t()
    ok("cudaGraphGetNodes", graph, None, byref(count))
    return count.value

one, two = stream(), stream()
"""


def test_a_capture_spreads_by_events_and_ends_where_it_began() -> None:
    lines = output(
        BEGIN
        + """
forked, joined = event(), event()
ok("cudaStreamBeginCapture", one, GLOBAL)
print(launch(one), state(one), state(two), cuda.movie_phantom_launches())
ok("cudaEventRecord", forked, one)
ok("cudaStreamWaitEvent", two, forked, 0)
print(state(two), launch(two), launch(one))
ok("cudaEventRecord", joined, two)
ok("cudaStreamWaitEvent", one, joined, 0)
code, graph = end(one)
print(code, state(one), state(two), nodes(graph))
exe = get("cudaGraphInstantiateWithFlags", graph, 0)
ok("cudaGraphDestroy", graph)
ok("cudaGraphLaunch", exe, two)
print(cuda.movie_phantom_launches())
ok("cudaGraphExecDestroy", exe)
print(do("cudaGraphLaunch", exe, two), do("cudaGraphDestroy", graph))
"""
    )
    assert lines == ["0 1 0 0", "1 0 0", "0 0 0 3", "3", "1 1"]


def test_what_a_capture_depends_on_can_be_asked_and_set() -> None:
    lines = output(
        BEGIN
        + """
def info(on):
    status, number, graph, nodes, edges, count = c_int(), c_uint64(), c_uint64(), c_void_p(), c_void_p(), c_size_t()
    outs = [byref(one) for one in (status, number, graph, nodes, edges, count)]
    ok("cudaStreamGetCaptureInfo", on, *outs)
    found = ctypes.cast(nodes, ctypes.POINTER(c_uint64))
    return number.value, graph.value, [found[at] for at in range(count.value)]

def before(node):
    count = c_size_t(8)
    out = (c_uint64 * 8)()
    ok("cudaGraphNodeGetDependencies", node, out, None, byref(count))
    return list(out[: count.value])

forked = event()
ok("cudaStreamBeginCapture", one, RELAXED)
launch(one)
number, graph, (first,) = info(one)
launch(one)
_, _, (second,) = info(one)
ok("cudaEventRecord", forked, one)
ok("cudaStreamWaitEvent", two, forked, 0)
print(info(two) == (number, graph, [second]), before(first), before(second) == [first])
ok("cudaStreamUpdateCaptureDependencies", two, (c_uint64 * 1)(first), None, 1, 1)
print(info(two)[2] == [first])
launch(two)
print(before(info(two)[2][0]) == [first], nodes(graph))
"""
    )
    assert lines == ["True [] True", "True", "True 3"]


def test_ends_that_are_none() -> None:
    lines = output(
        BEGIN
        + """
import threading
print(end(one), do("cudaStreamBeginCapture", 0, GLOBAL))
ok("cudaStreamBeginCapture", one, GLOBAL)
print(do("cudaStreamBeginCapture", one, GLOBAL))
forked = event()
launch(one)
ok("cudaEventRecord", forked, one)
ok("cudaStreamWaitEvent", two, forked, 0)
print(end(two)[0], end(one)[0], state(two))

ok("cudaStreamBeginCapture", one, GLOBAL)
launch(one)
ok("cudaEventRecord", forked, one)
ok("cudaStreamWaitEvent", two, forked, 0)
launch(two)
print(end(one), state(one), state(two))

ok("cudaStreamBeginCapture", one, THREAD)
codes = []
thread = threading.Thread(target=lambda: codes.append(end(one)[0]))
thread.start()
thread.join()
print(codes, end(one)[0])
"""
    )
    assert lines == ["(401, 0) 900", "401", "903 901 0", "(904, 0) 0 0", "[908] 901"]


def test_calls_that_a_capture_does_not_allow_break_it() -> None:
    calls = {
        'do("cudaStreamSynchronize", one)': 900,
        'do("cudaStreamQuery", one)': 900,
        'do("cudaDeviceSynchronize")': 900,
        'do("cudaMalloc", byref(c_uint64()), 1)': 900,
        'do("cudaFree", memory)': 900,
        'do("cudaHostAlloc", byref(c_uint64()), 1, 0)': 900,
        'do("cudaEventQuery", outside)': 900,
        'do("cudaEventQuery", inside)': 907,
        'do("cudaEventSynchronize", inside)': 907,
        'do("cudaStreamWaitEvent", one, outside, 0)': 905,
        'do("cudaMemcpyAsync", here, memory, 8, 2, one)': 900,
    }
    lines = output(
        BEGIN
        + f"""
memory, here = get("cudaMalloc", 1), ctypes.addressof(ctypes.create_string_buffer(8))
inside, outside = event(), event()
ok("cudaEventRecord", outside, two)
for call in {list(calls)!r}:
    ok("cudaStreamBeginCapture", one, GLOBAL)
    launch(one)
    ok("cudaEventRecord", inside, one)
    print(eval(call), state(one), launch(one), end(one)[0])
"""
    )
    assert lines == [f"{code} 2 901 901" for code in calls.values()]


def test_modes_say_who_may_call() -> None:
    lines = output(
        BEGIN
        + """
import threading

def elsewhere(mode):
    codes = []
    def body():
        exchanged = c_int(mode)
        ok("cudaThreadExchangeStreamCaptureMode", byref(exchanged))
        codes.append(do("cudaMalloc", byref(c_uint64()), 1))
    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    return codes[0]

for capture in (GLOBAL, THREAD, RELAXED):
    for mode in (GLOBAL, THREAD, RELAXED):
        ok("cudaStreamBeginCapture", one, capture)
        launch(one)
        there = elsewhere(mode)
        print(capture, mode, there, end(one)[0])
ok("cudaStreamBeginCapture", one, RELAXED)
print(do("cudaMalloc", byref(c_uint64()), 1))
"""
    )
    broken = {(0, 0)}
    expected = [f"{a} {b} {'900 901' if (a, b) in broken else '0 0'}" for a in range(3) for b in range(3)]
    assert lines == [*expected, "0"]


def test_the_legacy_stream_during_a_capture() -> None:
    lines = output(
        BEGIN
        + """
ok("cudaStreamBeginCapture", one, RELAXED)
print(launch(0), launch(one), end(one)[0])
blocking = stream(0)
ok("cudaStreamBeginCapture", blocking, RELAXED)
print(state(0), launch(blocking), end(blocking)[0])
"""
    )
    assert lines == ["0 0 0", "906 901 901"]


def test_two_captures_do_not_mix() -> None:
    lines = output(
        BEGIN
        + """
mark = event()
ok("cudaStreamBeginCapture", one, RELAXED)
ok("cudaStreamBeginCapture", two, RELAXED)
launch(one)
ok("cudaEventRecord", mark, one)
print(do("cudaStreamWaitEvent", two, mark, 0), end(one)[0], end(two)[0])
"""
    )
    assert lines == ["902 901 901"]


def test_objects_live_as_long_as_a_graph_that_holds_them() -> None:
    lines = output(
        BEGIN
        + """
import time
gone = []
Function = ctypes.CFUNCTYPE(None, c_void_p)
destroy = Function(gone.append)

def settled():
    for _ in range(200):
        if gone:
            break
        time.sleep(0.01)
    return gone

ok("cudaStreamBeginCapture", one, RELAXED)
launch(one)
graph = end(one)[1]
thing = get("cudaUserObjectCreate", 42, destroy, 1, 0)
ok("cudaGraphRetainUserObject", graph, thing, 1, 1)
exe = get("cudaGraphInstantiateWithFlags", graph, 0)
ok("cudaGraphDestroy", graph)
time.sleep(0.05)
print(gone)
ok("cudaGraphExecDestroy", exe)
print(settled())
"""
    )
    assert lines == ["[]", "[42]"]


def test_conditional_bodies_are_graphs_of_their_own() -> None:
    lines = output(
        BEGIN
        + """
class Params(ctypes.Structure):
    _fields_ = [("type", c_int), ("reserved", c_int * 3), ("handle", c_uint64), ("kind", c_int), ("size", c_int),
                ("graphs", ctypes.POINTER(c_uint64)), ("rest", c_uint64 * 27)]

ok("cudaStreamBeginCapture", one, RELAXED)
launch(one)
graph, tail, status = c_uint64(), c_void_p(), c_int()
count = c_size_t()
ok("cudaStreamGetCaptureInfo", one, byref(status), None, byref(graph), byref(tail), None, byref(count))
handle = get("cudaGraphConditionalHandleCreate", graph.value, 0, 0)
params, node = Params(13, (0, 0, 0), handle, 0, 1), c_uint64()
ok("cudaGraphAddNode", byref(node), graph.value, tail.value, None, count.value, byref(params))
ok("cudaStreamUpdateCaptureDependencies", one, byref(node), None, 1, 1)
body = params.graphs[0]
ok("cudaStreamBeginCaptureToGraph", two, body, None, None, 0, RELAXED)
launch(two)
launch(two)
print(end(two) == (0, body), nodes(body))
launch(one)
code, whole = end(one)
print(code, nodes(whole))
ok("cudaGraphLaunch", get("cudaGraphInstantiateWithFlags", whole, 0), one)
print(cuda.movie_phantom_launches())
"""
    )
    assert lines == ["True 2", "0 3", "4"]
