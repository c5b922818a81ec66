"""What runs inside the programs that MOVie watches: in their interpreter, whatever that has installed.

So it needs the standard library alone, of Python 3.9 and later, and nothing of MOVie but this folder. `path` is put on
PYTHONPATH; its `sitecustomize` loads this package under the name `movie_child` and calls `begin`.
"""

import os


def begin() -> None:
    """Arranges what the environment asks for. Called once, before any code of the program."""
    folder = os.environ.get("MOVIE_CAPTURE_FOLDER")
    if folder:
        from . import recording  # noqa: PLC0415

        recording.arrange(folder)
    if os.environ.get("MOVIE_ENABLE") == "1":
        from . import enabling  # noqa: PLC0415

        enabling.arrange()
    if os.environ.get("MOVIE_ALONE") == "1":
        from . import alone, last_backward, launchers  # noqa: PLC0415

        launchers.arrange()
        alone.arrange()
        last_backward.arrange()
