"""The cards that a phantom can be: files of `key = value` lines, which the native library has built in as well."""

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from movie.errors import InputError

DEFAULT = "a100-80"
_FOLDER = Path(__file__).parent / "cards"
_SUFFIX = ".card"


@dataclass(frozen=True)
class Card:
    """What the Python side needs to know of a card. Sizes in bytes.

    `name`: as people write it, or the path of a property file. `title`: as the driver names it. `memory`: in all;
    `context`: what a process takes of it before it allocates anything.
    """

    name: str
    title: str
    memory: int
    context: int


def card_names() -> list[str]:
    """The built-in cards, in alphabetical order."""
    return sorted(path.stem for path in _FOLDER.glob(f"*{_SUFFIX}"))


def find_card(name: str) -> Card:
    """The card of a name, in upper or lower case (`a100-80`, also `a100-80g`), or of a property file (a path with `/`).

    Raises InputError for an unknown one, with those that it may be.
    """
    if "/" in name:
        return _read(Path(name), name)
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    names = card_names()
    for candidate in (wanted, wanted.removesuffix("b"), wanted.removesuffix("gb"), wanted.removesuffix("g")):
        if candidate in names:
            return _read(_FOLDER / f"{candidate}{_SUFFIX}", candidate)
    close = get_close_matches(wanted, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(names)}, or a file of properties"
    raise InputError(f"no card is called {name!r}: {hint}")


def _read(path: Path, name: str) -> Card:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"{path}: the properties of a card cannot be read: {reason}") from None
    values: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0].strip()
        key, equals, value = content.partition("=")
        if content and not equals:
            raise InputError(f"{path}:{number}: {content!r} is not 'key = value'")
        if content:
            values[key.strip()] = value.strip()
    for key in ("name", "memory", "context"):
        if not values.get(key):
            raise InputError(f"{path}: has no '{key}'")
    for key in ("memory", "context"):
        if not values[key].isdecimal():
            raise InputError(f"{path}: '{key}' is {values[key]!r}, not a number of bytes")
    return Card(name, values["name"], int(values["memory"]), int(values["context"]))
