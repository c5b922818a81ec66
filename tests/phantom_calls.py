"""Code for a child process on the phantom: CUDA's calls by name, with plain numbers for addresses and handles."""

import textwrap

from phantom_child import output_on_phantom, run_on_phantom

CALLS = '''
import ctypes
import json
from ctypes import byref, c_char_p, c_double, c_float, c_int, c_int32, c_size_t, c_uint8, c_uint64, c_void_p

cuda = ctypes.CDLL(None)
MIB = 1 << 20
OUT_OF_MEMORY, INVALID, NOT_READY = 2, 1, 600


def do(name, *arguments):
    """The code that a function returns. Numbers are passed as they are, 64 bits wide."""
    wide = [c_uint64(one & (1 << 64) - 1) if isinstance(one, int) else one for one in arguments]
    return getattr(cuda, name)(*wide)


def get(name, *arguments):
    """The number that a function writes through its first argument."""
    out = c_uint64()
    code = do(name, byref(out), *arguments)
    assert code == 0, f"{name}: {code}"
    return out.value


def ok(name, *arguments):
    code = do(name, *arguments)
    assert code == 0, f"{name}: {code}"


class Prop(ctypes.Structure):
    _fields_ = [("type", c_int), ("handles", c_int), ("location", c_int), ("device", c_int), ("meta", c_void_p),
                ("flags", c_uint8 * 8)]


class Access(ctypes.Structure):
    _fields_ = [("location", c_int), ("device", c_int), ("flags", c_int)]


def create(size, device=0, handles=0):
    return get("cuMemCreate", size, byref(Prop(1, handles, 1, device)), 0)


def may_touch(address, size, device=0, flags=3):
    return do("cuMemSetAccess", address, size, byref(Access(1, device, flags)), 1)


def memory_info():
    free, total = c_size_t(), c_size_t()
    ok("cudaMemGetInfo", byref(free), byref(total))
    return free.value, total.value


def counters():
    text = ctypes.create_string_buffer(1 << 16)
    cuda.movie_phantom_counters(text, c_size_t(len(text)))
    return json.loads(text.value)


def stream(flags=1):
    return get("cudaStreamCreateWithFlags", flags)


def event(flags=2):
    return get("cudaEventCreateWithFlags", flags)


class Dim3(ctypes.Structure):
    _fields_ = [("x", c_int32), ("y", c_int32), ("z", c_int32)]


def launch(on=0):
    return cuda.cudaLaunchKernel(c_void_p(1), Dim3(1, 1, 1), Dim3(32, 1, 1), None, c_size_t(0), c_void_p(on))
'''


def output(code: str, **settings: object) -> list[str]:
    """The lines that the code prints; its indentation as a whole does not matter."""
    return output_on_phantom(CALLS + "\n" + textwrap.dedent(code), **settings).splitlines()


def outcome(code: str, **settings: object) -> tuple[int, str]:
    """Exit code and standard error."""
    result = run_on_phantom(CALLS + "\n" + textwrap.dedent(code), **settings)  # type: ignore[arg-type]
    return result.returncode, result.stderr
