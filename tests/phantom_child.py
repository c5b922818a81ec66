"""For tests of the phantom's library: they run Python in a child process that has it preloaded."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping

from movie.phantom.cards import find_card
from movie.phantom.environment import phantom_environment
from movie.phantom.settings import PhantomSettings

# The functions of the phantom, as a program finds them: among those of the process.
PREAMBLE = """
import ctypes
from ctypes import byref, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_uint64, c_void_p

cuda = ctypes.CDLL(None)

def made(function, *arguments):
    \"\"\"The object that a function creates through its first argument.\"\"\"
    target = c_void_p()
    assert function(byref(target), *arguments) == 0, function.__name__
    return target
"""

# What `movie run` and `movie capture` do for the programs that they start: without it one in some hundreds aborts at
# its end, in a race of torch's own, and more on a busy machine.
_REST = """
import atexit
from movie.child.last_backward import wait_for_rest
atexit.register(wait_for_rest)
"""


def run_on_phantom(
    code: str,
    *,
    card: str = "a100-80",
    memory: int | None = None,
    count: int = 1,
    lag: int = 0,
    seed: int = 0,
    timeout: float = 240,
    arguments: tuple[str, ...] = (),
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """Runs Python code (indented as a whole, if at all) on a phantom; `variables` go to its environment as they are."""
    settings = PhantomSettings(find_card(card), memory, count, lag, seed, quiet=True)
    with phantom_environment(settings, _clean(os.environ)) as environment:
        return subprocess.run(
            [sys.executable, "-c", _REST + textwrap.dedent(code), *arguments],
            env={**environment, **variables},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )


def output_on_phantom(code: str, **settings: object) -> str:
    """What the code prints. Fails with what it wrote to standard error if it does not end well."""
    result = run_on_phantom(code, **settings)  # type: ignore[arg-type]
    assert result.returncode == 0, result.stderr[-4000:]
    return result.stdout


def calls_on_phantom(code: str, **settings: object) -> str:
    """Like `output_on_phantom`, for code that calls the functions directly: it finds them in `cuda`."""
    return output_on_phantom(PREAMBLE + textwrap.dedent(code), **settings)


def _clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what a caller's shell would add to a preloaded library."""
    return {name: value for name, value in environment.items() if name not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
