"""The allocators that a replay can run, and how people name them: `native`, `gmlake:frag=64MiB`, `movie:page=8MiB`."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from movie import _core
from movie.errors import InputError
from movie.evaluate.replay import BOUND
from movie.sizes import looks_like_size, parse_size

_DEFAULTS = ("native", "movie", "movie-lean", BOUND)


@dataclass(frozen=True)
class AllocatorSpec:
    """An allocator by name, with the options it was given (sizes already in bytes). `text` is what the person wrote."""

    name: str
    options: dict[str, str] = field(default_factory=dict)
    text: str = ""

    def __str__(self) -> str:
        return self.text or self.name


def known_allocators() -> dict[str, str]:
    """Every name that a replay takes, with one line that says what it is."""
    known = {entry.name: entry.summary for entry in _core.catalogue()}
    return known | {BOUND: "the floor: peak requested bytes, pools kept apart; no allocator can reserve less"}


def options_of(name: str) -> tuple[str, ...]:
    """The keys of the options that the allocator takes."""
    return next((tuple(entry.options) for entry in _core.catalogue() if entry.name == name), ())


def parse_allocator(text: str) -> AllocatorSpec:
    """The allocator that `name` or `name:key=value,key=value` stands for. Values that are sizes may have a unit.

    Raises InputError, which lists what exists, for an unknown name, option or value.
    """
    name, colon, rest = text.strip().partition(":")
    known = known_allocators()
    if name not in known:
        raise InputError(f"unknown allocator {name!r}; there are: {', '.join(known)}")
    options: dict[str, str] = {}
    keys = options_of(name)
    for item in rest.split(",") if colon else ():
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not key or not value:
            raise InputError(f"allocator {text!r}: {item!r} is not of the form key=value")
        if key not in keys:
            has = f"its options are: {', '.join(keys)}" if keys else "it has none"
            raise InputError(f"allocator {name!r} has no option {key!r}; {has}")
        if key in options:
            raise InputError(f"allocator {text!r}: option {key!r} is given twice")
        options[key] = (
            str(parse_size(value, what=f"option {key} of allocator {name}:")) if looks_like_size(value) else value
        )
    spec = AllocatorSpec(name, options, text.strip())
    if options:
        _check_values(spec)
    return spec


def default_allocators() -> list[AllocatorSpec]:
    """What is compared where nobody chose: PyTorch's own allocator, MOVie under both policies, and the floor."""
    return [AllocatorSpec(name) for name in _DEFAULTS if name in known_allocators()]


def all_allocators() -> list[AllocatorSpec]:
    """Every allocator there is, without options."""
    return [AllocatorSpec(name) for name in known_allocators()]


def with_page_size(specs: Sequence[AllocatorSpec], page: int) -> list[AllocatorSpec]:
    """The allocators, with pages of `page` bytes where they have pages and no size of their own.

    Raises InputError if none of them has pages.
    """
    if not any("page" in options_of(spec.name) for spec in specs):
        raise InputError(f"--page: none of the allocators ({', '.join(map(str, specs))}) has pages")
    changed = []
    for spec in specs:
        if "page" in options_of(spec.name) and "page" not in spec.options:
            paged = replace(spec, options=spec.options | {"page": str(page)})
            _check_values(paged)
            changed.append(paged)
        else:
            changed.append(spec)
    return changed


def _check_values(spec: AllocatorSpec) -> None:
    """Lets the allocator itself judge the values, before a long replay begins."""
    try:
        _core.make_allocator(_core.ModelDevice(), spec.name, spec.options)
    except ValueError as error:
        raise InputError(f"allocator {str(spec)!r}: {error}") from None
