"""The one error that readers and writers of traces raise."""

from pathlib import Path

from movie.errors import InputError

_LONGEST = 400  # characters of a message; what a file holds must not fill a terminal


class TraceError(InputError):
    """A file cannot be read or written as a trace.

    `path` is the file, `where` the place in it (`byte 17`, `line 3`, `device_traces[0][17].size`, or empty for the
    whole file), `what` says what is wrong. `str()` is one line: `path: where: what`.
    """

    def __init__(self, path: str | Path, where: str, what: str) -> None:
        super().__init__(path, where, what)
        self.path = str(path)
        self.where = where
        self.what = what

    def __str__(self) -> str:
        text = ": ".join(part for part in (self.path, self.where, self.what) if part)
        # Names may come from the file, and the file from a stranger: no line breaks, no terminal escapes.
        line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
        return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
