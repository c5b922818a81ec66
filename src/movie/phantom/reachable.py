"""Whether MOVie can get into a program that it is to run: by PYTHONPATH, and a module that Python imports itself."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from movie.errors import InputError

_WITH_VALUE = "WX"  # switches of Python that are followed by a value
_LONG_WITH_VALUE = ("--check-hash-based-pycs",)
_ENDS = "cm"  # what follows these is the program
_SHUT_OUT = {"I": "isolates it from", "E": "ignores", "S": "does not import what is found through"}


def check_program(command: Sequence[str]) -> None:
    """Raises InputError for a command that can only end badly: a script without its interpreter, or a Python that was
    told to look at nothing from outside, in which MOVie would silently not be."""
    program = Path(command[0])
    if program.suffix == ".py" and shutil.which(command[0]) is None:
        known = "is a Python script" if program.is_file() else "is not there, and would be a Python script"
        raise InputError(f"{command[0]!r} {known}: name the interpreter before it, as in: -- python {command[0]}")
    if not program.name.startswith("python"):
        return
    for switch in _switches(command[1:]):
        if switch in _SHUT_OUT:
            raise InputError(
                f"python -{switch} {_SHUT_OUT[switch]} PYTHONPATH, through which MOVie gets into the program: leave it "
                "out"
            )


def _switches(arguments: Sequence[str]) -> list[str]:
    """The one-letter switches of an interpreter, up to its program."""
    found: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument in _LONG_WITH_VALUE:
            next(rest, None)
            continue
        if argument.startswith("--"):
            continue
        if not argument.startswith("-") or argument == "-":
            break
        for at, letter in enumerate(argument[1:], start=1):
            if letter in _ENDS:
                return found
            if letter in _WITH_VALUE:
                if at == len(argument) - 1:
                    next(rest, None)
                break
            found.append(letter)
    return found
