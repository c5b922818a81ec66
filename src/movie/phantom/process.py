"""Running a program to its end, so that nothing of it is left whatever happens."""

import ctypes
import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import Enum
from glob import glob
from pathlib import Path

from movie.errors import InputError
from movie.phantom.reachable import check_program

_PR_SET_CHILD_SUBREAPER = 36
_SI_KERNEL = 0x80  # the terminal sent the signal, to all of its foreground processes
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_GRACE = 5.0  # seconds between asking a process to end and ending it
_LOOK = 0.2  # seconds between looks for Python's own signal handlers


class Output(Enum):
    """Where a program writes: where we do, all to our standard error, or nowhere."""

    AS_IS = "as is"
    TO_STDERR = "to stderr"
    NOWHERE = "nowhere"


def run_program(command: Sequence[str], environment: Mapping[str, str], output: Output = Output.AS_IS) -> int:
    """Runs a program in this one's terminal and returns its exit code, 128 + n if signal n ended it.

    Signals to this process are passed on, and those of the terminal reach the program anyway. When the program ends, or
    an exception ends the wait, all processes that it started and left behind are ended too. Raises InputError if there
    is no such program, or one that MOVie cannot get into. For the main thread only.
    """
    check_program(command)
    before = _children()
    awaited = {*_FORWARDED, signal.SIGCHLD}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    _adopt_orphans(True)
    try:
        child = _start(command, environment, mask, output)
        try:
            return _wait(child, awaited)
        finally:
            _end_all(before)
    finally:
        _adopt_orphans(False)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _start(
    command: Sequence[str], environment: Mapping[str, str], mask: set[int | signal.Signals], output: Output
) -> int:
    actions: list[tuple[object, ...]] = []
    if output is Output.NOWHERE:
        actions = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
    elif output is Output.TO_STDERR:
        actions = [(os.POSIX_SPAWN_DUP2, 2, 1)]
    try:
        return os.posix_spawnp(
            command[0],
            list(command),
            environment,
            file_actions=actions,
            setsigmask=mask,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores them; a program expects them as they are
        )
    except OSError as error:
        raise InputError(f"cannot run {command[0]!r}: {error.strerror}") from None


def _wait(child: int, awaited: set[signal.Signals]) -> int:
    while True:
        # Every child is reaped, also orphans that became ours.
        while (ended := _reap()) is not None:
            pid, code = ended
            if pid == child:
                return code
        info = signal.sigtimedwait(awaited, _LOOK)
        if info is not None and info.si_signo != signal.SIGCHLD and info.si_code != _SI_KERNEL:
            _pass_on(info.si_signo, child)


def _pass_on(number: int, child: int) -> None:
    """A signal that was sent to us alone.

    Those that terminals send go to all that runs, as a terminal has it: a shell that runs the program keeps them.
    """
    for pid in {child} if number == signal.SIGTERM else {child, *_descendants(child)}:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _reap() -> tuple[int, int] | None:
    """A child that has ended, and its exit code."""
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    if pid == 0:
        return None
    code = os.waitstatus_to_exitcode(status)
    return pid, code if code >= 0 else 128 - code


def _end_all(keep: set[int]) -> None:
    """Ends all children but those to keep, politely at first. The children of one that ends become ours."""
    deadline = time.monotonic() + _GRACE
    asked: set[int] = set()
    while left := _children() - keep:
        late = time.monotonic() > deadline
        for pid in left if late else left - asked:
            try:
                os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
            except ProcessLookupError:
                continue
        asked |= left
        while _reap() is not None:
            pass
        time.sleep(0.01)


def _children(process: int | str = "self") -> set[int]:
    """The direct children of a process; none if it has ended."""
    found: set[int] = set()
    for task in glob(f"/proc/{process}/task/*/children"):
        with suppress(OSError):  # a thread that has just ended
            found.update(int(pid) for pid in Path(task).read_text().split())
    return found


def _descendants(process: int) -> set[int]:
    children = _children(process)
    return children.union(*map(_descendants, children))


def _adopt_orphans(wanted: bool) -> None:
    """Whether processes whose parent has ended become children of this one, wherever below it they are."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0)
