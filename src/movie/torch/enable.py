"""Putting MOVie in the place of PyTorch's own allocator."""

import re
import sys
import warnings
from typing import Any

from movie.torch.config import Config

OLDEST_TORCH = (2, 6)
OLDEST_DRIVER = 11020  # CUDA 11.2: the first with everything that is called


class EnableError(RuntimeError):
    """MOVie cannot become the allocator of this process; `str()` says why and what to do."""


class _State:
    config: Config | None = None  # of this process, once MOVie is its allocator
    bridged = False
    allocator: Any = None  # torch's object; kept for as long as the process lives


def enabled() -> bool:
    """Whether MOVie is the allocator of CUDA tensors in this process."""
    return _State.config is not None


def bridged() -> bool:
    """Whether it is so through the compiled bridge."""
    return _State.bridged


def _core() -> Any:
    from movie import _core as core  # noqa: PLC0415 - `import movie` works where the native core cannot be loaded

    return core.torch


def enable(config: Config | None = None) -> bool:
    """Makes MOVie the allocator of all CUDA tensors of this process: call it after `import torch`, before anything
    touches a GPU.

    Without a `config` the environment chooses (Config.from_environment). Returns True; False only where
    `fallback="native"` left PyTorch's allocator in place, with a warning. Calling it again with the same configuration,
    or with none, changes nothing.

    Raises EnableError where MOVie cannot work or it is too late, InputError for a configuration that cannot be.
    """
    if _State.config is not None:
        if config is not None and config != _State.config:
            raise EnableError(
                f"MOVie is already enabled in this process with {_State.config}; an allocator cannot be changed while "
                "its memory is in use. Enable it once, with the configuration you want"
            )
        return True
    config = config or Config.from_environment()
    torch = _torch_with_cuda()
    _check_not_too_late(torch)
    problem = _machine_problem(config)
    if problem:
        if config.fallback == "native":
            warnings.warn(f"MOVie is not used, PyTorch's own allocator is: {problem}", RuntimeWarning, stacklevel=2)
            return False
        raise EnableError(problem)
    _install(torch, config)
    return True


def _torch_with_cuda() -> Any:
    try:
        import torch  # noqa: PLC0415 - takes seconds, and is not needed for the rest of the package
    except ImportError as error:
        raise EnableError(f"PyTorch cannot be imported ({error}); install a CUDA build of it") from error
    version = re.match(r"(\d+)\.(\d+)", torch.__version__)
    if version is None or tuple(map(int, version.groups())) < OLDEST_TORCH:
        oldest = ".".join(map(str, OLDEST_TORCH))
        raise EnableError(f"PyTorch {torch.__version__} is too old: MOVie needs {oldest} or later")
    if not hasattr(torch._C, "_cuda_customAllocator"):
        raise EnableError(
            f"this PyTorch ({torch.__version__}) was built without CUDA: install a CUDA build (pytorch.org/get-started)"
        )
    return torch


def _check_not_too_late(torch: Any) -> None:
    advice = "call movie.enable() right after `import torch`, or start the program with `movie run`"
    if torch.cuda.is_initialized():
        raise EnableError(
            f"CUDA is already initialised in this process, and its allocator can no longer be changed: {advice}"
        )
    backend = torch.cuda.memory.get_allocator_backend()
    if backend != "native":
        raise EnableError(
            f"this process uses the allocator {backend!r} already: leave it out (PYTORCH_CUDA_ALLOC_CONF=backend:..., "
            "change_current_allocator) and enable MOVie alone"
        )


def _machine_problem(config: Config) -> str:
    """Why MOVie cannot work on this machine; empty: nothing that can be seen yet speaks against it."""
    from movie._core import CudaUnavailable  # noqa: PLC0415 - as above

    core = _core()
    try:
        version = core.driver_version()
        if version < OLDEST_DRIVER:
            return (
                f"the CUDA driver is too old (CUDA {version // 1000}.{version % 1000 // 10}): MOVie needs one for "
                f"CUDA {OLDEST_DRIVER // 1000}.{OLDEST_DRIVER % 1000 // 10} or later"
            )
        if config.fallback == "native":
            problems = [problem for _, problem in core.inspect_devices() if problem]
            return problems[0] if problems else ""
    except CudaUnavailable as error:
        return str(error)
    return ""


def _install(torch: Any, config: Config) -> None:
    from movie.torch.limits import arrange_limits  # noqa: PLC0415 - as above
    from movie.torch.replacements import replace_reports  # noqa: PLC0415

    core = _core()
    core.configure(config.policy, config.native_options(), config.cap())
    _State.bridged = _install_bridge(torch, config)
    if not _State.bridged:
        _install_hooks(torch)
    if not core.find_torch_exception():
        print(
            f"movie: PyTorch {torch.__version__} does not offer its OutOfMemoryError; RuntimeError is raised instead",
            file=sys.stderr,
        )
    _State.config = config
    replace_reports(torch, config)
    arrange_limits(torch, _State.bridged)


def _install_hooks(torch: Any) -> None:
    hooks = _core().hooks()
    allocator = torch._C._cuda_customAllocator(hooks["alloc"], hooks["free"])
    allocator.set_reset_fn(hooks["reset"])
    allocator.set_memory_fraction_fn(hooks["memory_fraction"])
    allocator.set_base_alloc_fn(hooks["base_alloc"])
    allocator.set_record_stream_fn(hooks["record_stream"])
    allocator.set_begin_allocate_to_pool(hooks["begin_allocate_to_pool"])
    allocator.set_end_allocate_to_pool_fn(hooks["end_allocate_to_pool"])
    allocator.set_release_pool(hooks["release_pool"])
    try:
        torch._C._cuda_changeCurrentAllocator(allocator)
    except RuntimeError as error:
        raise EnableError(f"PyTorch does not let its allocator be changed: {error}") from error
    _State.allocator = allocator


def _install_bridge(torch: Any, config: Config) -> bool:
    """Whether the bridge is in place now. Where it was not built, or does not work, hooks do."""
    from movie.torch.bridge import find_bridge, install_bridge  # noqa: PLC0415 - as above

    if config.bridge == "off":
        return False
    path = find_bridge(torch.__version__)
    problem = "it was not built: run `movie bridge build`"
    if path is not None:
        problem = install_bridge(path, _core().bridge_table())
        if not problem:
            return True
        if config.bridge == "auto":
            warnings.warn(f"the bridge {path} is not used: {problem}", RuntimeWarning, stacklevel=4)
    if config.bridge == "require":
        raise EnableError(f"the bridge to PyTorch {torch.__version__} cannot be used: {problem}")
    return False
