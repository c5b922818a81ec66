"""cuBLAS, NCCL and cuDNN of the phantom, called as a library's user calls them; no torch is needed."""

import shutil
import subprocess
from pathlib import Path

import pytest
from phantom_child import calls_on_phantom, run_on_phantom

# Two streams on a card that never gets anything done by itself: a stream with work is busy, and stays so.
STREAMS = """
def stream():
    return made(cuda.cudaStreamCreateWithFlags, 1)

def busy(stream):
    return cuda.cudaStreamQuery(stream) == 600

first, second = stream(), stream()
"""


def _busy(code: str) -> str:
    return calls_on_phantom(STREAMS + code, lag=-1).strip()


class TestCublas:
    def test_work_goes_to_the_stream_of_its_handle(self) -> None:
        """Also where another handle was given its stream later, as a stand-in with one current stream gets wrong."""
        code = """
one, other = made(cuda.cublasCreate_v2), made(cuda.cublasCreate_v2)
assert cuda.cublasSetStream_v2(one, first) == 0
assert cuda.cublasSetStream_v2(other, second) == 0
assert cuda.cublasSgemm_v2(one) == 0
print(busy(first), busy(second))
assert cuda.cublasGemmStridedBatchedEx(other) == 0
print(busy(first), busy(second))
"""
        assert _busy(code) == "True False\nTrue True"

    def test_a_handle_that_is_none_is_refused(self) -> None:
        code = """
handle = made(cuda.cublasCreate_v2)
assert cuda.cublasDestroy_v2(handle) == 0
stray = ctypes.create_string_buffer(256)
print(cuda.cublasSgemm_v2(None), cuda.cublasSgemm_v2(stray), cuda.cublasSetStream_v2(stray, None))
"""
        assert calls_on_phantom(code).split() == ["1", "1", "1"]

    def test_settings_are_read_back(self) -> None:
        code = """
handle, value = made(cuda.cublasCreate_v2), c_int(99)
for name, good in (("PointerMode_v2", 1), ("MathMode", 3), ("AtomicsMode", 1), ("SmCountTarget", 20)):
    assert getattr(cuda, "cublasSet" + name)(handle, good) == 0
    assert getattr(cuda, "cublasGet" + name)(handle, byref(value)) == 0
    print(value.value)
print(cuda.cublasSetPointerMode_v2(handle, 7), cuda.cublasSetWorkspace_v2(handle, c_void_p(255), c_size_t(1)))
"""
        assert calls_on_phantom(code).split() == ["1", "3", "1", "20", "7", "7"]

    def test_a_result_on_the_host_is_a_zero_and_the_work_is_done(self) -> None:
        code = """
handle, result = made(cuda.cublasCreate_v2), c_double(7)
assert cuda.cublasSetStream_v2(handle, first) == 0
assert cuda.cublasDdot_v2(handle, 4, None, 1, None, 1, byref(result)) == 0
print(result.value, busy(first))
result.value = 7
assert cuda.cublasSetPointerMode_v2(handle, 1) == 0
assert cuda.cublasDdot_v2(handle, 4, None, 1, None, 1, byref(result)) == 0
print(result.value, busy(first))
"""
        assert _busy(code) == "0.0 False\n7.0 True"

    def test_a_matmul_of_cublaslt_needs_descriptions_and_a_stream(self) -> None:
        code = """
operation = made(cuda.cublasLtMatmulDescCreate, 68, 0)
layout = made(cuda.cublasLtMatrixLayoutCreate, 0, c_uint64(4), c_uint64(4), c_int64(4))
preference = made(cuda.cublasLtMatmulPreferenceCreate)
room = c_uint64(1 << 20)
assert cuda.cublasLtMatmulPreferenceSetAttribute(preference, 1, byref(room), c_size_t(8)) == 0
result, found = ctypes.create_string_buffer(96), c_int()
layouts = [layout] * 4
assert cuda.cublasLtMatmulAlgoGetHeuristic(None, operation, *layouts, preference, 1, result, byref(found)) == 0
workspace = int.from_bytes(result.raw[64:72], "little")
print(found.value, workspace <= room.value, int.from_bytes(result.raw[72:76], "little"))
buffer = made(cuda.cudaMalloc, c_size_t(1 << 20))

def matmul(operation):
    a, b, c, d = [(buffer, layout)] * 4
    return cuda.cublasLtMatmul(None, operation, None, *a, *b, None, *c, *d, result, None, c_size_t(0), first)

print(matmul(layout) == 0, matmul(None), busy(second), matmul(operation), busy(first))
"""
        assert _busy(code) == "1 True 0\nTrue 7 False 0 True"

    def test_a_matrix_is_copied_by_its_columns(self) -> None:
        """Columns of two elements out of columns of three, by way of the card, on a card whose memory has bytes."""
        code = """
matrix = (c_int * 6)(1, 2, 3, 4, 5, 6)
back = (c_int * 4)()
card = made(cuda.cudaMalloc, c_size_t(1 << 20))
assert cuda.cublasSetMatrixAsync(2, 2, 4, matrix, 3, card, 2, None) == 0
assert cuda.cublasGetMatrixAsync(2, 2, 4, card, 2, back, 2, None) == 0
assert cuda.cudaDeviceSynchronize() == 0
print(*back, cuda.cublasSetMatrixAsync(3, 2, 4, matrix, 2, card, 3, None))
"""
        assert calls_on_phantom(code, MOVIE_PHANTOM_BYTES="1").split() == ["1", "2", "4", "5", "7"]


class TestNccl:
    SETUP = """
class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]

cuda.ncclCommInitRank.argtypes = [c_void_p, c_int, UniqueId, c_int]
identity = UniqueId()
assert cuda.ncclGetUniqueId(byref(identity)) == 0

def communicator(size, rank):
    made = c_void_p()
    result = cuda.ncclCommInitRank(byref(made), size, identity, rank)
    return made if result == 0 else result
"""

    def test_a_rank_knows_its_place(self) -> None:
        code = """
comm, value = communicator(8, 3), c_int()
assert cuda.ncclCommCount(comm, byref(value)) == 0
print(value.value)
assert cuda.ncclCommUserRank(comm, byref(value)) == 0
print(value.value)
assert cuda.ncclCommGetAsyncError(comm, byref(value)) == 0
print(value.value, communicator(4, 4), communicator(0, 0), cuda.ncclCommCount(None, byref(value)))
part = made(lambda target: cuda.ncclCommShrink(comm, (c_int * 2)(1, 7), 2, target, None, 0))
assert cuda.ncclCommUserRank(part, byref(value)) == 0
print(value.value)
assert cuda.ncclCommCount(part, byref(value)) == 0
print(value.value)
split = c_void_p(1)
assert cuda.ncclCommSplit(comm, -1, 0, byref(split), None) == 0
print(split.value)
assert cuda.ncclCommDestroy(comm) == 0
"""
        assert calls_on_phantom(self.SETUP + code).split() == ["8", "3", "0", "4", "4", "4", "2", "6", "None"]

    def test_a_group_becomes_work_when_it_ends(self) -> None:
        code = """
comm = communicator(2, 0)
buffer = made(cuda.cudaMalloc, c_size_t(1 << 20))
reduce = lambda stream: cuda.ncclAllReduce(buffer, buffer, c_size_t(16), 7, 0, comm, stream)
assert cuda.ncclGroupStart() == 0 and cuda.ncclGroupStart() == 0
assert reduce(first) == 0
assert cuda.ncclGroupEnd() == 0
print(busy(first))
assert cuda.ncclGroupEnd() == 0
print(busy(first), busy(second), cuda.ncclGroupEnd())
assert reduce(second) == 0
print(busy(second))
"""
        assert _busy(self.SETUP + code) == "False\nTrue False 5\nTrue"

    def test_a_revoked_communicator_takes_no_work(self) -> None:
        code = """
comm = communicator(2, 0)
assert cuda.ncclCommRevoke(comm, 0) == 0
buffer = made(cuda.cudaMalloc, c_size_t(1 << 20))
print(cuda.ncclAllReduce(buffer, buffer, c_size_t(16), 7, 0, comm, first), busy(first))
"""
        assert _busy(self.SETUP + code) == "5 False"

    def test_the_own_share_arrives_where_it_belongs(self) -> None:
        """Rank 1 of 3, with three elements a rank, on a card whose memory has bytes."""
        code = """
comm = communicator(3, 1)
card = made(cuda.cudaMalloc, c_size_t(1 << 20))
at = lambda element: c_void_p(card.value + 4 * element)

def after(function, *arguments):
    values = (c_int * 32)(*range(1, 10), *[0] * 23)
    assert cuda.cudaMemcpy(card, values, c_size_t(128), 1) == 0
    assert function(*arguments, comm, None) == 0
    assert cuda.cudaMemcpy(values, card, c_size_t(128), 2) == 0
    return values[16:25]

count = c_size_t(3)
print(after(cuda.ncclAllGather, at(0), at(16), count, 2))
print(after(cuda.ncclReduceScatter, at(0), at(16), count, 2, 0))
print(after(cuda.ncclAlltoAll, at(0), at(16), count, 2))
print(after(cuda.ncclBroadcast, at(0), at(16), count, 2, 0))
print(after(cuda.ncclBroadcast, at(0), at(16), count, 2, 1))
print(after(cuda.ncclReduce, at(0), at(16), count, 2, 0, 2))
"""
        assert calls_on_phantom(self.SETUP + code, MOVIE_PHANTOM_BYTES="1").splitlines() == [
            "[0, 0, 0, 1, 2, 3, 0, 0, 0]",
            "[4, 5, 6, 0, 0, 0, 0, 0, 0]",
            "[0, 0, 0, 4, 5, 6, 0, 0, 0]",
            "[0, 0, 0, 0, 0, 0, 0, 0, 0]",
            "[1, 2, 3, 0, 0, 0, 0, 0, 0]",
            "[0, 0, 0, 0, 0, 0, 0, 0, 0]",
        ]


class TestCudnn:
    SETUP = """
handle = made(cuda.cudnnCreate)
INT64, DESCRIPTOR, POINTER, DATA_TYPE = 3, 15, 6, 1

def put(descriptor, name, kind, *values):
    element = c_int if kind == DATA_TYPE else c_int64
    if kind == DESCRIPTOR:
        values = [value.value for value in values]
    return cuda.cudnnBackendSetAttribute(descriptor, name, kind, c_int64(len(values)), (element * len(values))(*values))

def filled(kind, *attributes):
    descriptor = made(lambda target: cuda.cudnnBackendCreateDescriptor(kind, target))
    for attribute in attributes:
        assert put(descriptor, *attribute) == 0, attribute
    assert cuda.cudnnBackendFinalize(descriptor) == 0, kind
    return descriptor

def get(descriptor, name, kind, room, elements):
    count = c_int64(-1)
    status = cuda.cudnnBackendGetAttribute(descriptor, name, kind, c_int64(room), byref(count), elements)
    return status, count.value

def tensor(identity, kind, *dimensions, last=False):
    batch, channels, *points = dimensions
    order = [batch, *points, channels] if last else dimensions
    strides, stride = [], 1
    for size in reversed(order):
        strides.insert(0, stride)
        stride *= size
    if last:
        strides = [strides[0], strides[-1], *strides[1:-1]]
    return filled(17, (906, INT64, identity), (901, DATA_TYPE, kind), (902, INT64, *dimensions), (903, INT64, *strides))

def graph(kind, parts):
    return filled(15, (801, DESCRIPTOR, filled(kind, *[(name, DESCRIPTOR, part) for name, part in parts.items()])))

def forward(kind, last):
    x = tensor(1, kind, 8, 64, 56, 56, last=last)
    w = tensor(2, kind, 64, 64, 3, 3, last=last)
    y = tensor(3, kind, 8, 64, 56, 56, last=last)
    return graph(10, {704: x, 703: w, 705: y})

def plans(graph, mode=0):
    heuristic = filled(4, (201, DESCRIPTOR, graph), (200, 8, mode))
    status, count = get(heuristic, 202, DESCRIPTOR, 0, None)
    configs = (c_void_p * count)(*[made(lambda t: cuda.cudnnBackendCreateDescriptor(3, t)).value for _ in range(count)])
    assert get(heuristic, 202, DESCRIPTOR, count, configs) == (0, count)
    return [filled(5, (401, DESCRIPTOR, c_void_p(config))) for config in configs]

def workspace(plan):
    size = c_int64(-1)
    assert get(plan, 402, INT64, 1, byref(size)) == (0, 1)
    return size.value
"""

    def test_a_plan_without_room_for_a_workspace_has_an_alternative(self) -> None:
        code = """
fast, frugal = plans(forward(2, last=False))
print(workspace(fast), workspace(frugal), len(plans(forward(2, last=False), mode=2)))
print(*[workspace(plan) for plan in plans(forward(2, last=True))])
"""
        tensors = (2 * 8 * 64 * 56 * 56 + 64 * 64 * 3 * 3) * 2
        assert calls_on_phantom(self.SETUP + code).split() == [str(tensors), "0", "1", "0", "0"]

    def test_gradients_of_a_filter_in_half_precision_are_summed_up_in_single(self) -> None:
        code = """
for kind in (2, 0):
    parts = {716: tensor(1, kind, 8, 64, 9, 9, last=True), 715: tensor(2, kind, 64, 64, 3, 3, last=True),
             717: tensor(3, kind, 8, 64, 9, 9, last=True)}
    print(workspace(plans(graph(11, parts))[0]))
"""
        assert calls_on_phantom(self.SETUP + code).split() == [str(64 * 64 * 9 * 4), "0"]

    def test_a_plan_runs_on_the_stream_of_the_handle_it_is_given(self) -> None:
        code = """
fast, frugal = plans(forward(2, last=False))
pack = filled(16, (1000, INT64, 1), (1001, POINTER, 4096))
roomy = filled(16, (1003, POINTER, 4096))
assert cuda.cudnnSetStream(handle, first) == 0
print(cuda.cudnnBackendExecute(handle, fast, pack), busy(first))
print(cuda.cudnnBackendExecute(handle, frugal, pack), busy(first), busy(second))
assert cuda.cudnnSetStream(handle, second) == 0
print(cuda.cudnnBackendExecute(handle, fast, roomy), busy(second))
"""
        assert _busy(self.SETUP + code) == "2006 False\n0 True False\n0 True"

    def test_descriptors_are_filled_then_finalized_then_read(self) -> None:
        code = """
empty = made(lambda target: cuda.cudnnBackendCreateDescriptor(17, target))
size = c_int64()
print(get(empty, 902, INT64, 1, byref(size))[0])
print(cuda.cudnnBackendFinalize(empty), cuda.cudnnBackendExecute(handle, empty, empty))
ready = tensor(1, 0, 4, 4, 4, 4)
print(put(ready, 906, INT64, 2), get(ready, 906, DATA_TYPE, 1, byref(size))[0])
print(get(ready, 906, INT64, 1, byref(size))[0])
unready = made(lambda target: cuda.cudnnBackendCreateDescriptor(17, target))
operation = made(lambda target: cuda.cudnnBackendCreateDescriptor(10, target))
print(size.value, put(operation, 704, DESCRIPTOR, unready))
"""
        assert calls_on_phantom(self.SETUP + code).split() == ["2004", "2000", "2000", "2000", "2010", "0", "1", "2004"]

    def test_a_descriptor_outlives_the_callers_hold_on_its_parts(self) -> None:
        code = """
x = tensor(1, 2, 8, 64, 56, 56)
ready = graph(10, {704: x, 703: x, 705: x})
assert cuda.cudnnBackendDestroyDescriptor(x) == 0
print(workspace(plans(ready)[0]))
"""
        assert int(calls_on_phantom(self.SETUP + code)) == 3 * 8 * 64 * 56 * 56 * 2

    @pytest.mark.parametrize("directions", [1, 2])
    def test_the_weights_of_an_lstm_lie_side_by_side_and_fill_their_space(self, directions: int) -> None:
        code = f"""
directions, layers, width, hidden, gates = {directions}, 2, 24, 16, 8
network = made(cuda.cudnnCreateRNNDescriptor)
shape = (width, hidden, hidden, layers)
assert cuda.cudnnSetRNNDescriptor_v8(network, 0, 2, 2, directions - 1, 0, 0, 0, 0, *shape, None, 0) == 0
size = c_size_t()
assert cuda.cudnnGetRNNWeightSpaceSize(handle, network, byref(size)) == 0
shape, address = made(cuda.cudnnCreateTensorDescriptor), c_void_p()
unused, pieces = c_void_p(), []
for layer in range(layers * directions):
    for matrix in range(gates):
        for bias in (False, True):
            wanted, other = (shape, byref(address)), (None, byref(unused))
            pair = (*other, *wanted) if bias else (*wanted, *other)
            assert cuda.cudnnGetRNNWeightParams(handle, network, layer, size, c_void_p(4096), matrix, *pair) == 0
            kind, count, dimensions, strides = c_int(), c_int(), (c_int * 3)(), (c_int * 3)()
            assert cuda.cudnnGetTensorNdDescriptor(shape, 3, byref(kind), byref(count), dimensions, strides) == 0
            pieces.append((address.value - 4096, 4 * dimensions[0] * dimensions[1] * dimensions[2]))
pieces.sort()
print(all(start + length == next_start for (start, length), (next_start, _) in zip(pieces, pieces[1:])))
print(pieces[0][0], sum(pieces[-1]) - size.value, size.value)
"""
        inputs = [24, 16 * directions]
        elements = sum(directions * 4 * 16 * (width + 16 + 2) for width in inputs)
        assert calls_on_phantom(self.SETUP + code).split() == ["True", "0", "0", str(4 * elements)]

    def test_the_older_convolutions_refuse_too_small_a_workspace(self) -> None:
        code = """
x, y = made(cuda.cudnnCreateTensorDescriptor), made(cuda.cudnnCreateTensorDescriptor)
w = made(cuda.cudnnCreateFilterDescriptor)
convolution = made(cuda.cudnnCreateConvolutionDescriptor)
four = c_int * 4
for descriptor in (x, y):
    assert cuda.cudnnSetTensorNdDescriptor(descriptor, 0, 4, four(2, 8, 9, 9), four(648, 81, 9, 1)) == 0
assert cuda.cudnnSetFilterNdDescriptor(w, 0, 0, 4, four(8, 8, 3, 3)) == 0
count, results = c_int(), (ctypes.c_char * (48 * 4))()
assert cuda.cudnnGetConvolutionForwardAlgorithm_v7(handle, x, w, convolution, y, 4, byref(count), results) == 0
fast, memory = int.from_bytes(results.raw[:4], "little"), int.from_bytes(results.raw[16:24], "little")
run = lambda algorithm, room: cuda.cudnnConvolutionForward(
    handle, None, x, None, w, None, convolution, algorithm, None, c_size_t(room), None, y, None)
print(count.value, memory, run(fast, memory), run(fast, memory - 1), run(0, 0))
"""
        assert calls_on_phantom(self.SETUP + code).split() == ["2", str((2 * 2 * 648 + 576) * 4), "0", "2006", "0"]


def test_a_runtime_linked_into_an_extension_is_told_why_it_cannot_start(tmp_path: Path) -> None:
    """Such a runtime asks the driver for private functions; here a library stands for it that asks as it does."""
    source, library = tmp_path / "extension.cpp", tmp_path / "libextension.so"
    source.write_text(
        "#include <dlfcn.h>\n"
        'extern "C" int start() {\n'
        '    void* driver = dlopen("libcuda.so.1", RTLD_NOW);\n'
        "    using Get = int (*)(const void**, const void*);\n"
        "    const void* table = &driver;\n"
        '    const int code = reinterpret_cast<Get>(dlsym(driver, "cuGetExportTable"))(&table, "an identifier");\n'
        "    return table ? -1 : code;\n"
        "}\n"
    )
    compiler = shutil.which("c++")
    assert compiler, "the tests need the compiler that built the project"
    subprocess.run([compiler, "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    code = "import ctypes, sys; start = ctypes.CDLL(sys.argv[1]).start; print(start(), start())"
    result = run_on_phantom(code, arguments=(str(library),))
    assert result.stdout.split() == ["500", "500"]
    assert result.stderr.count("libextension.so asks for private functions of the driver") == 1
