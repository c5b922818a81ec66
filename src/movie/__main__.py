"""`python -m movie` and the command `movie`."""

import signal
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command line. Ctrl-C while it is being loaded ends the process without a word."""
    by_python = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if by_python:  # not where a shell that runs us in the background has it ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from movie.commands import main as run  # noqa: PLC0415 - takes a third of a second

    if by_python:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
