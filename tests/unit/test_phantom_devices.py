"""Which cards the phantom has, and what a program learns of them."""

import subprocess
from pathlib import Path

import pytest
from phantom_calls import outcome, output

from movie.phantom.cards import card_names, find_card

WHO = """
def attribute(number, device=0):
    out = c_int()
    ok("cudaDeviceGetAttribute", byref(out), number, device)
    return out.value

name = ctypes.create_string_buffer(256)
ok("cuDeviceGetName", name, 256, 0)
"""


@pytest.mark.parametrize("card", card_names())
def test_each_card_says_who_it_is(card: str) -> None:
    lines = output(
        WHO
        + """
space = ctypes.create_string_buffer(1032)
ok("cudaGetDeviceProperties", space, 0)
print(name.value.decode())
print(ctypes.string_at(space) == name.value, memory_info()[1], attribute(75) * 10 + attribute(76))
print(int.from_bytes(space[288:296], "little") == memory_info()[1])
print(attribute(16) > 0, attribute(97) <= attribute(81), attribute(8), attribute(38) > 1 << 20)
""",
        card=card,
    )
    known = find_card(card)
    assert lines[0] == known.title
    assert lines[1].startswith(f"True {known.memory} ")
    assert lines[2:] == ["True", "True True 49152 True"]


def test_several_cards_have_memory_streams_and_a_current_one_each() -> None:
    lines = output(
        """
        import threading
        count = c_int()
        ok("cudaGetDeviceCount", byref(count))
        ok("cudaSetDevice", 1)
        place = get("cudaMalloc", 4 * MIB)
        mine = stream()
        print(count.value, [cuda.movie_phantom_used(device) // MIB for device in range(3)])
        device = c_int()
        ok("cudaGetDevice", byref(device))
        there = []
        def look():
            out = c_int()
            ok("cudaGetDevice", byref(out))
            there.append(out.value)
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        print(device.value, there, do("cudaSetDevice", 3), do("cudaSetDevice", -1))
        ok("cudaSetDevice", 0)
        print(do("cudaEventRecord", event(), mine), launch(mine), memory_info()[1] - memory_info()[0] < 1 << 30)
        ok("cudaFree", place)
        print(cuda.movie_phantom_used(1))
        """,
        count=3,
    )
    assert lines == ["3 [0, 4, 0]", "1 [0] 101 101", "400 400 True", "0"]


def test_a_context_comes_with_the_first_call_that_needs_it() -> None:
    lines = output(
        """
        def active(device):
            flags, out = c_int(), c_int()
            ok("cuDevicePrimaryCtxGetState", device, byref(flags), byref(out))
            return out.value
        ok("cuInit", 0)
        count = c_int()
        ok("cudaGetDeviceCount", byref(count))
        print(active(0), active(1))
        ok("cudaFree", None)
        print(active(0), active(1))
        ok("cudaSetDevice", 1)
        print(active(0), active(1))
        """,
        count=2,
    )
    assert lines == ["0 0", "1 0", "1 1"]


def test_peers() -> None:
    lines = output(
        """
        can = c_int()
        ok("cudaDeviceCanAccessPeer", byref(can), 0, 1)
        print(can.value, do("cudaDeviceEnablePeerAccess", 1, 0), do("cudaDeviceEnablePeerAccess", 1, 0))
        print([do("cudaDeviceDisablePeerAccess", 1) for _ in range(2)], do("cudaDeviceEnablePeerAccess", 0, 0))
        """,
        count=2,
    )
    assert lines == ["1 0 704", "[0, 705] 101"]
    lonely = output(
        """
        can = c_int()
        ok("cudaDeviceCanAccessPeer", byref(can), 0, 1)
        print(can.value, do("cudaDeviceEnablePeerAccess", 1, 0))
        """,
        card="rtx3090",
        count=2,
    )
    assert lonely == ["0 217"]


def test_mappings_are_for_the_devices_that_were_named() -> None:
    lines = output(
        """
        place, page = get("cuMemAddressReserve", 2 * MIB, 0, 0, 0), create(2 * MIB, device=1)
        ok("cuMemMap", place, 2 * MIB, 0, page, 0)
        assert may_touch(place, 2 * MIB, device=1) == 0
        print(cuda.movie_phantom_used(0), cuda.movie_phantom_used(1) // MIB, do("cudaMemset", place, 0, 8))
        assert may_touch(place, 2 * MIB, device=0) == 0
        print(do("cudaMemset", place, 0, 8))
        assert may_touch(place, 2 * MIB, device=0, flags=0) == 0
        print(do("cudaMemset", place, 0, 8))
        """,
        count=2,
    )
    assert lines == ["0 2 1", "0", "1"]


def test_it_says_once_that_it_is_a_phantom() -> None:
    code, errors = outcome('ok("cudaFree", None)\nget("cudaMalloc", 1)', MOVIE_PHANTOM_QUIET="0")
    assert code == 0
    assert errors.count("\n") == 1
    assert "NVIDIA A100-SXM4-80GB is a phantom" in errors
    _, silent = outcome("count = c_int()\nok('cudaGetDeviceCount', byref(count))", MOVIE_PHANTOM_QUIET="0")
    assert silent == ""


def test_a_card_too_small_for_a_context() -> None:
    code, errors = outcome('assert do("cudaFree", None) == 2', MOVIE_PHANTOM_MEMORY=str(100 << 20))
    assert code == 0
    assert "too small for a context" in errors


def test_without_a_card_there_is_none() -> None:
    lines = output(
        """
        count = c_int(7)
        print(do("cudaGetDeviceCount", byref(count)), count.value, do("cuInit", 0), do("nvmlInit_v2"))
        """,
        MOVIE_PHANTOM_DEVICE="",
    )
    assert lines == ["100 0 100 9"]


@pytest.mark.parametrize(
    ("variable", "value", "line"),
    [
        ("DEVICE", "a1000", "unknown card 'a1000' (known: a100-40"),
        ("DEVICE", "/nowhere/x.card", "cannot read the card's properties from /nowhere/x.card"),
        ("LAG", "soon", "a whole number of at least -1 is meant"),
        ("FAULT", "cudaMalloc", "FUNCTION:CALL[:CODE]"),
        ("COSTS", "free", "unknown cost table 'free'"),
    ],
)
def test_settings_that_cannot_be_end_the_run(variable: str, value: str, line: str) -> None:
    code, errors = outcome('do("cuInit", 0)', **{f"MOVIE_PHANTOM_{variable}": value})
    assert code == 2
    assert line in errors
    assert errors.count("\n") == 1


def test_a_card_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.card"
    path.write_text(
        "name = Mine  # a comment\nmajor = 9\nminor = 1\nmultiprocessors = 3\nmemory = 1073741824\ncontext = 1048576\n"
        "shared_per_block_optin = 99000\nshared_per_multiprocessor = 100000\nl2_cache = 1\nbus_width = 64\nclock = 1\n"
        "memory_clock = 1\ngranularity = 65536\n"
    )
    lines = output(
        WHO
        + 'print(name.value, attribute(16), memory_info()); get("cudaMalloc", 1); print(cuda.movie_phantom_used(0))',
        card=str(path),
    )
    assert lines == [f"b'Mine' 3 ({1073741824 - 1048576}, 1073741824)", "65536"]
    path.write_text(path.read_text().replace("clock = 1\n", "clock = fast\n", 1))
    code, errors = outcome('do("cuInit", 0)', MOVIE_PHANTOM_DEVICE=str(path))
    assert code == 2
    assert "'clock = fast' is no whole number" in errors


def test_a_forked_child_has_no_card() -> None:
    lines = output("""
        import os
        place = get("cudaMalloc", 1)
        child = os.fork()
        if child == 0:
            os._exit(do("cudaMalloc", byref(c_uint64()), 1))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), do("cudaFree", place))
    """)
    assert lines == ["3 0"]


def test_the_driver_is_found_under_its_own_names() -> None:
    """Libraries that load libcuda or NVML get the library that is there already, not a second one."""
    lines = output("""
        get("cudaMalloc", 4 * MIB)
        driver, management = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvidia-ml.so.1")
        free, total = c_size_t(), c_size_t()
        print(driver.cuMemGetInfo_v2(byref(free), byref(total)), (free.value, total.value) == memory_info())
        handle, memory = c_void_p(), (c_uint64 * 3)()
        print(management.nvmlInit_v2(), management.nvmlDeviceGetHandleByIndex_v2(0, byref(handle)))
        print(management.nvmlDeviceGetMemoryInfo(handle, memory), list(memory[:2]) == list(memory_info()[::-1]))
        entry, status = c_void_p(), c_int()
        ok("cudaGetDriverEntryPointByVersion", b"cuMemGetInfo", byref(entry), 12000, 0, byref(status))
        print(status.value, entry.value == ctypes.cast(driver.cuMemGetInfo_v2, c_void_p).value)
        ok("cudaGetDriverEntryPointByVersion", b"cuNoSuchThing", byref(entry), 12000, 0, byref(status))
        print(status.value, entry.value)
        import os
        count, processes = c_int(), (c_uint64 * 6)()
        print(management.nvmlDeviceGetComputeRunningProcesses(handle, byref(count), processes), count.value)
        print(management.nvmlDeviceGetComputeRunningProcesses(handle, byref(count), processes), count.value)
        print(processes[0] == os.getpid(), processes[1] == total.value - free.value)
    """)
    assert lines == ["0 True", "0 0", "0 True", "0 True", "1 None", "7 1", "0 1", "True True"]


@pytest.mark.parametrize(("version", "answers"), [(12040, "12040 1 0"), (13000, "13000 7 1")])
def test_functions_of_one_name_are_those_of_the_loaded_runtime(version: int, answers: str, tmp_path: Path) -> None:
    """CUDA 12 has one argument fewer. The runtime of the wheel says which it is, also when only one module sees it."""
    source, library = tmp_path / "cudart.c", tmp_path / f"libcudart.so.{version // 1000}"
    source.write_text(f"int cudaRuntimeGetVersion(int* out) {{ *out = {version}; return 0; }}")
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    lines = output(f"""
        ctypes.CDLL("{library}", mode=ctypes.RTLD_LOCAL)
        version = c_int()
        ok("cudaRuntimeGetVersion", byref(version))
        graph = get("cudaGraphCreate", 0)
        node = get("cudaGraphAddEmptyNode", graph, None, 0)
        second = get("cudaGraphAddEmptyNode", graph, byref(c_uint64(node)), 1)
        third, fourth = c_size_t(7), c_size_t(0)
        ok("cudaGraphNodeGetDependencies", second, None, byref(third), byref(fourth))
        print(version.value, third.value, fourth.value)
    """)
    assert lines == [answers]
