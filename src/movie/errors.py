"""What a person can mend: bad usage and bad input. The command line prints it as one line and exits with 2."""


class InputError(Exception):
    """Something that was given cannot be used; `str()` is one line that says what, and what would do instead."""
