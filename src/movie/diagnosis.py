"""What of MOVie works on this machine: one finding a subject, each with what to do about it."""

import ctypes
import importlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from movie import __version__

_OLDEST_PYTHON = (3, 10)
_LIBRARIES = ("numpy", "pyarrow", "rich", "typer")
_MACHINES = ("x86_64", "aarch64")
# Of commands and tests; what people set is movie.torch.config.VARIABLES.
_OTHER_VARIABLES = (
    "MOVIE_PHANTOM_",
    "MOVIE_CAPTURE_",
    "MOVIE_LIVE_",
    "MOVIE_RUN_",
    "MOVIE_ENABLE",
    "MOVIE_ALONE",
    "MOVIE_DATA",
)
_CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102


@dataclass(frozen=True)
class Finding:
    """`warn`: something optional is missing. `fail`: something does not work. `advice`: empty where all is well."""

    name: str
    status: Literal["ok", "warn", "fail"]
    text: str
    advice: str = ""


def diagnose() -> list[Finding]:
    """Looks at everything; a check that itself breaks becomes a `fail` finding, so that the others are still seen."""
    checks: dict[str, Callable[[], Finding]] = {
        "python": _python,
        "platform": _platform,
        "libraries": _libraries,
        "native core": _core,
        "allocators": _allocators,
        "demo recordings": _recordings,
        "torch": _torch,
        "bridge": _bridge,
        "settings": _settings,
        "CUDA driver": _cuda,
        "phantom card": _phantom,
    }
    findings = []
    for name, check in checks.items():
        try:
            findings.append(check())
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            findings.append(
                Finding(name, "fail", " ".join(text.split()), "reinstall movie-alloc; if that does not help, report it")
            )
    return findings


def _python() -> Finding:
    text = f"{platform.python_implementation()} {platform.python_version()}"
    if sys.version_info < _OLDEST_PYTHON:
        return Finding("python", "fail", text, "use Python 3.10 or later")
    return Finding("python", "ok", text)


def _platform() -> Finding:
    text = f"{platform.system()} {platform.machine()}"
    if platform.system() != "Linux" or platform.machine() not in _MACHINES:
        return Finding("platform", "warn", text, f"MOVie is built and tested on Linux, {' and '.join(_MACHINES)}")
    return Finding("platform", "ok", text)


def _libraries() -> Finding:
    found, missing = [], []
    for library in _LIBRARIES:
        try:
            found.append(f"{library} {importlib.metadata.version(library)}")
            importlib.import_module(library)
        except ImportError as error:  # PackageNotFoundError is one
            missing.append(f"{library} ({error})")
    if missing:
        return Finding(
            "libraries",
            "fail",
            f"cannot be used: {', '.join(missing)}",
            "install movie-alloc with pip, which brings them",
        )
    return Finding("libraries", "ok", ", ".join(found))


def _core() -> Finding:
    try:
        core = importlib.import_module("movie._core")
    except ImportError as error:
        text = " ".join(str(error).split())
        return Finding(
            "native core",
            "fail",
            f"cannot be loaded: {text}",
            "reinstall movie-alloc with this Python: pip install --force-reinstall movie-alloc",
        )
    version = core.__version__
    if version != __version__:
        return Finding(
            "native core",
            "fail",
            f"version {version}, but the package is {__version__}",
            "reinstall movie-alloc: two versions are mixed",
        )
    return Finding("native core", "ok", f"version {version}")


def _allocators() -> Finding:
    from movie.allocators import known_allocators  # noqa: PLC0415 - needs the native core, which may be what is broken

    return Finding("allocators", "ok", ", ".join(known_allocators()))


def _recordings() -> Finding:
    from movie.demonstration import recordings  # noqa: PLC0415 - as above

    present = [path for path in recordings() if path.is_file()]
    if len(present) < len(recordings()):
        return Finding("demo recordings", "fail", "not installed with the package", "reinstall movie-alloc")
    return Finding("demo recordings", "ok", ", ".join(path.stem for path in present))


def _torch() -> Finding:
    try:
        # Importing torch takes seconds and may start the driver; its version is enough.
        return Finding("torch", "ok", f"torch {importlib.metadata.version('torch')} (not needed for replays)")
    except importlib.metadata.PackageNotFoundError:
        return Finding(
            "torch",
            "warn",
            "not installed",
            "nothing to do for replays; to record runs of your own, install torch where they run",
        )


def _torch_version() -> tuple[str, str]:
    """Of the torch that is installed, and of the CUDA that it was built for; empty: there is none. As a file of torch's
    has them: to import it takes seconds and may start the driver."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return "", ""
    said: dict[str, str | None] = {}
    text = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
    for name, _, value in re.findall(r"^(__version__|cuda)\b[^=\n]*=\s*(['\"])(.+)\2", text, re.MULTILINE):
        said[name] = value
    return said.get("__version__") or "", said.get("cuda") or ""


def _bridge() -> Finding:
    from movie.errors import InputError  # noqa: PLC0415 - as above
    from movie.torch.bridge import bridge_path, check_tools, find_bridge  # noqa: PLC0415

    version, cuda = _torch_version()
    if not cuda:
        return Finding("bridge", "ok", "of no use: there is no CUDA build of torch here")
    try:
        found, path = find_bridge(version), bridge_path(version)
    except InputError as error:
        return Finding("bridge", "warn", str(error), "nothing to do: MOVie works without it, but for docs/pytorch.md")
    if found is not None:
        return Finding("bridge", "ok", f"built for torch {version}: {found}")
    required = os.environ.get("MOVIE_BRIDGE") == "require"
    status: Literal["warn", "fail"] = "fail" if required else "warn"
    if path.exists():
        text = f"{path} is not used: others than you own or may change it"
        return Finding("bridge", status, text, "remove it, and build it anew: movie bridge build")
    advice = "run `movie bridge build` for what PyTorch's own C++ asks of an allocator (docs/pytorch.md)"
    try:
        check_tools()
    except InputError as error:
        advice = f"{advice}; {error}"
    return Finding(
        "bridge", status, f"not built for torch {version}" + ", and MOVIE_BRIDGE requires it" * required, advice
    )


def _settings() -> Finding:
    from movie.errors import InputError  # noqa: PLC0415 - as above
    from movie.torch.config import VARIABLES, Config  # noqa: PLC0415

    given = {name: value for name, value in os.environ.items() if name.startswith("MOVIE_")}
    chosen = {name: given[name] for name in VARIABLES if given.get(name)}
    try:
        Config.from_environment(given)
    except InputError as error:
        advice = f"change or unset it; set are: {', '.join(f'{name}={value}' for name, value in chosen.items())}"
        return Finding("settings", "fail", f"of the environment: {error}", advice)
    unknown = sorted(name for name in set(given) - set(VARIABLES) if not name.startswith(_OTHER_VARIABLES))
    if unknown:
        text = f"{', '.join(unknown)}: nothing of MOVie is called so"
        return Finding("settings", "warn", text, f"there are: {', '.join(VARIABLES)}")
    text = ", ".join(f"{name}={value}" for name, value in chosen.items())
    return Finding("settings", "ok", text or "no MOVIE_ variable is set: defaults")


def _cuda() -> Finding:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return Finding(
            "CUDA driver", "warn", "no libcuda.so.1 on this machine", "nothing to do for replays: they need no GPU"
        )
    status = driver.cuInit(0)
    if status != 0:
        return Finding(
            "CUDA driver", "warn", f"cuInit answers error {status}", "see whether nvidia-smi works; replays need no GPU"
        )
    version, count = ctypes.c_int(), ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    driver.cuDeviceGetCount(ctypes.byref(count))
    devices = f"{count.value} device{'' if count.value == 1 else 's'}"
    text = f"CUDA {version.value // 1000}.{version.value % 1000 // 10}, {devices}"
    without = []
    for index in range(count.value):
        device, supported = ctypes.c_int(), ctypes.c_int()
        status = driver.cuDeviceGet(ctypes.byref(device), index)
        if status == 0:
            status = driver.cuDeviceGetAttribute(
                ctypes.byref(supported), _CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device
            )
        if status != 0 or not supported.value:
            without.append(str(index))
    if without:
        return Finding(
            "CUDA driver",
            "warn",
            f"{text}; no virtual memory management on device {', '.join(without)}",
            "use a card and a driver that have it (CUDA 10.2 or later)",
        )
    return Finding("CUDA driver", "ok", f"{text}, all with virtual memory management" if count.value else text)


def _phantom() -> Finding:
    from movie.errors import InputError  # noqa: PLC0415 - as above
    from movie.phantom.cards import DEFAULT, card_names, find_card  # noqa: PLC0415
    from movie.phantom.environment import phantom_environment  # noqa: PLC0415
    from movie.phantom.settings import PhantomSettings  # noqa: PLC0415

    try:
        with phantom_environment(PhantomSettings(find_card(DEFAULT))) as environment:
            started = subprocess.run([sys.executable, "-c", ""], env=environment, capture_output=True, check=False)
    except InputError as error:
        return Finding("phantom card", "warn", str(error), "nothing to do for replays: they need none")
    if started.returncode or started.stderr:  # what the loader says of a library that it cannot preload
        text = f"a program does not start with it: {started.stderr.decode(errors='replace').strip()[:200]}"
        return Finding("phantom card", "fail", " ".join(text.split()), "reinstall movie-alloc, built on this machine")
    return Finding("phantom card", "ok", f"any of {', '.join(card_names())}, for a CUDA build of torch")
