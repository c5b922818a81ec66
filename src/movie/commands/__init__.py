"""The command line. One file a command; this one gathers them and turns errors into lines and exit codes.

Exit codes: 0 done; 2 bad usage or input (one line on standard error); 3 an allocator ran out of memory in a replay that
was to complete; 130 interrupted.
"""

import os
import signal
import sys
from typing import Annotated, NoReturn

import typer

from movie import __version__
from movie.commands import bench, bridge, capture, convert, demo, doctor, fit, replay, run
from movie.errors import InputError

# The base of all usage errors. typer moved from the click package to a copy of its own; its public name leads to both.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]

app = typer.Typer(
    name="movie",
    help="A GPU memory allocator that does not fragment, and tools that show where the memory went.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("replay")(replay.replay)
app.command("fit")(fit.fit)
app.command("capture", context_settings={"allow_interspersed_args": False})(capture.capture)
app.command("bench")(bench.bench)
app.command("convert")(convert.convert)
app.command("run", context_settings={"allow_interspersed_args": False})(run.run)
app.add_typer(bridge.app, name="bridge")
app.command("doctor")(doctor.doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"movie {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A GPU memory allocator that does not fragment, and tools that show where the memory went."""


def main() -> NoReturn:
    """Runs the command that the arguments name, and exits with its code."""
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except InputError as error:
        _fail(str(error))
    except _UsageError as error:
        _fail(_usage_text(error))
    except (KeyboardInterrupt, typer.Abort):
        _silence()
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        # The reader has gone (`movie replay ... | head`); what we would still print is of no interest.
        _silence()
        sys.exit(128 + signal.SIGPIPE)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(text: str) -> NoReturn:
    line = " ".join(text.split())
    print(f"movie: {line}", file=sys.stderr)
    sys.exit(2)


def _usage_text(error: Exception) -> str:
    format_message = getattr(error, "format_message", None)
    text = str(format_message() if format_message else error)
    context = getattr(error, "ctx", None)
    return f"{text} Try '{context.command_path} --help'." if context is not None else text


def _silence() -> None:
    """Nothing more is printed, not even by the interpreter when it flushes at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            os.dup2(nowhere, stream.fileno())
        except (OSError, ValueError):  # a stream that was replaced or closed
            continue
