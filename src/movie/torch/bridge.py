"""The compiled bridge: MOVie as a full allocator of the PyTorch that is installed, for what torch's own C++ code asks.

It is built once for each version of PyTorch, with the user's compiler, and kept where only the user can write.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import movie
from movie.errors import InputError

_SOURCE = "bridge/bridge.cpp"
_LIBRARIES = ("c10", "c10_cuda", "torch_cpu", "torch_cuda")
_COMPILERS = ("c++", "g++", "clang++")


def find_bridge(version: str) -> Path | None:
    """The bridge that was built for this version of PyTorch and this MOVie, if there is one and nobody else can have
    changed it."""
    path = bridge_path(version)
    try:
        status, folder = path.stat(), path.parent.stat()
    except OSError:
        return None
    ours = all(each.st_uid == os.getuid() and not each.st_mode & 0o022 for each in (status, folder))
    return path if ours else None


def build_bridge(torch: Any) -> Path:
    """Compiles the bridge for this PyTorch (some seconds) and returns where it is kept.

    Raises InputError where there is no compiler or no CUDA header, or where it does not compile.
    """
    place = bridge_path(torch.__version__)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.parent.chmod(0o700)
    torch_folder = Path(torch.__file__).parent
    command = [
        *_compile(torch_folder / "include"),
        *("-O2", "-fPIC", "-shared", "-fvisibility=hidden"),
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        f"-L{torch_folder / 'lib'}",
        *(f"-l{library}" for library in _LIBRARIES),
    ]
    with TemporaryDirectory(dir=place.parent) as folder:
        made = Path(folder) / place.name
        result = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True, check=False)
        if result.returncode != 0:
            problem = _first_error(result.stderr)
            raise InputError(f"the bridge does not compile against PyTorch {torch.__version__}: {problem}")
        made.chmod(0o700)
        made.replace(place)  # whole or not at all, however many processes build it
    return place


def syntax_problem(include: Path) -> str:
    """The first thing that the compiler has against the bridge with the headers of some PyTorch; empty: nothing.

    Raises InputError as `build_bridge` does.
    """
    command = [*_compile(include), "-fsyntax-only"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return _first_error(result.stderr) if result.returncode else ""


def _compile(include: Path) -> list[str]:
    """The beginning of a compiler's command: what is compiled, with which headers of PyTorch."""
    source = sources()
    folders = [include, include / "torch" / "csrc" / "api" / "include", *_cuda_folders()]
    return [
        *_compiler(),
        *("-std=c++20", "-w", f"-I{source}"),
        *(f"-isystem{path}" for path in folders),
        str(source / _SOURCE),
    ]


def _first_error(said: str) -> str:
    return next((line for line in said.splitlines() if "error" in line), said.strip())


def install_bridge(path: Path, table: int) -> str:
    """Makes the bridge torch's allocator. `table`: of _core.torch.bridge_table(). Empty, or why it was not possible."""
    library = ctypes.CDLL(str(path))
    install = library.movie_bridge_install
    install.restype = ctypes.c_char_p
    install.argtypes = [ctypes.c_void_p]
    problem: bytes | None = install(table)
    return "" if problem is None else problem.decode()


def check_tools() -> None:
    """Raises InputError where there is no compiler, or no headers of the CUDA runtime."""
    _compiler()
    _cuda_folders()


def sources() -> Path:
    """The folder with the source of the bridge and its headers. Raises InputError where this installation has none."""
    for folder in movie.__path__:  # a checkout in use has what was installed elsewhere than its Python sources
        path = Path(folder) / "torch" / "native"
        if (path / _SOURCE).is_file():
            return path
    raise InputError("this installation lacks the source of the bridge: reinstall movie-alloc")


def bridge_path(version: str) -> Path:
    """Where the bridge to this version of PyTorch is kept once it is built. Raises InputError as `sources` does."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256()
    for path in sorted(sources().rglob("*.*")):
        digest.update(path.read_bytes())
    return cache / "movie" / "bridge" / f"torch-{version}-{digest.hexdigest()[:16]}.so"


def _compiler() -> list[str]:
    for name in (os.environ.get("CXX", ""), *_COMPILERS):
        command = name.split()
        if command and shutil.which(command[0]):
            return command
    raise InputError("the bridge needs a C++ compiler: install g++, or name one in CXX")


def _cuda_folders() -> list[Path]:
    """Where the headers of the CUDA runtime are: a toolkit, or what PyTorch's own packages brought along."""
    toolkits = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    for toolkit in filter(None, toolkits):
        folder = Path(toolkit) / "include"
        if (folder / "cuda_runtime_api.h").is_file() and (folder / "crt" / "host_defines.h").is_file():
            return [folder]
    places = [Path(entry) for entry in sys.path if entry]
    runtime = [path for place in places for path in sorted(place.glob("nvidia/*/include"), reverse=True)]
    runtime = [path for path in runtime if (path / "cuda_runtime_api.h").is_file()]
    # The runtime's package leaves out a few headers that others bring.
    rest = [place / "triton" / "backends" / "nvidia" / "include" for place in places]
    rest = [path for path in (*runtime, *rest) if (path / "crt" / "host_defines.h").is_file()]
    if not runtime or not rest:
        raise InputError(
            "the bridge needs the headers of the CUDA runtime: set CUDA_HOME to a toolkit, or install the packages "
            "nvidia-cuda-runtime and nvidia-cuda-crt"
        )
    return list(dict.fromkeys([runtime[0], rest[0]]))
