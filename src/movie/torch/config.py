"""What may be chosen about MOVie in a program, and the environment variables that choose it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from movie.errors import InputError
from movie.sizes import looks_like_size, parse_size

POLICIES = ("auto", "lean")
FALLBACKS = ("error", "native")
BRIDGES = ("auto", "off", "require")
_GRAIN = 2 << 20  # bytes, of which pages are multiples
_LARGEST_PAGE = 512 << 20

# Those of the environment that choose a configuration.
VARIABLES = (
    "MOVIE_POLICY",
    "MOVIE_MEMORY",
    "MOVIE_BUDGET",
    "MOVIE_PAGE",
    "MOVIE_FALLBACK",
    "MOVIE_BRIDGE",
    "MOVIE_OPTIONS",
)


@dataclass(frozen=True)
class Config:
    """How MOVie works in this process. The defaults are for everyone.

    `policy`: `auto` grows while the card has room and does next to no driver work once warm; `lean` uses every free
    page before it grows: the least memory. `memory`: the most that each device may reserve, in bytes or as `40GiB`
    (None: the card). `budget`: up to where `auto` grows freely (None: the card). `page`: the size of a physical page, a
    multiple of 2 MiB. `fallback`: what happens where MOVie cannot work (no driver, a card without virtual memory
    management): `error` raises EnableError, `native` warns and leaves PyTorch's own allocator in place; to know that
    before PyTorch does, `native` initialises the driver, which a process that is to fork before it uses the GPU should
    not do. `bridge`: whether the compiled bridge is used: `auto` where it was built (movie bridge build), `off`, or
    `require`, which raises EnableError where it was not. `options`: further options of the allocator, as
    `movie replay -a movie:KEY=VALUE` takes them.

    Raises InputError for values that cannot be.
    """

    policy: str = "auto"
    memory: int | str | None = None
    budget: int | str | None = None
    page: int | str | None = None
    fallback: str = "error"
    bridge: str = "auto"
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_choice("policy", self.policy, POLICIES)
        _check_choice("fallback", self.fallback, FALLBACKS)
        _check_choice("bridge", self.bridge, BRIDGES)
        for what, size in (("memory", self.memory), ("budget", self.budget)):
            if size is not None and parse_size(size, what=what) == 0:
                raise InputError(f"{what} {size!r} leaves nothing: leave it out where there is to be no limit")
        if self.page is not None:
            # The core refuses it as well, but knows it as a number only.
            page = parse_size(self.page, what="page")
            if page % _GRAIN or not 0 < page <= _LARGEST_PAGE:
                raise InputError(f"page {self.page!r} is not a multiple of 2 MiB, up to 512 MiB")
        self._check_options()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Config":
        """The configuration that MOVIE_POLICY, MOVIE_MEMORY, MOVIE_BUDGET, MOVIE_PAGE, MOVIE_FALLBACK, MOVIE_BRIDGE and
        MOVIE_OPTIONS (`key=value,key=value`) ask for; what is not set has its default."""
        options = {}
        for item in filter(None, environment.get("MOVIE_OPTIONS", "").split(",")):
            key, equals, value = (part.strip() for part in item.partition("="))
            if not equals:
                raise InputError(f"MOVIE_OPTIONS: {item!r} is not of the form key=value")
            options[key] = value
        return cls(
            policy=environment.get("MOVIE_POLICY") or "auto",
            memory=environment.get("MOVIE_MEMORY") or None,
            budget=environment.get("MOVIE_BUDGET") or None,
            page=environment.get("MOVIE_PAGE") or None,
            fallback=environment.get("MOVIE_FALLBACK") or "error",
            bridge=environment.get("MOVIE_BRIDGE") or "auto",
            options=options,
        )

    def to_environment(self) -> dict[str, str]:
        """The variables from which `from_environment` makes this configuration, in a child process."""
        variables = {
            "MOVIE_POLICY": self.policy,
            "MOVIE_MEMORY": self.memory,
            "MOVIE_BUDGET": self.budget,
            "MOVIE_PAGE": self.page,
            "MOVIE_FALLBACK": self.fallback,
            "MOVIE_BRIDGE": self.bridge,
            "MOVIE_OPTIONS": ",".join(f"{key}={value}" for key, value in self.options.items()),
        }
        return {name: str(value) for name, value in variables.items() if value not in (None, "")}

    def _check_options(self) -> None:
        try:
            from movie import _core  # noqa: PLC0415 - a configuration can be made where the native core cannot be loaded
        except ImportError:
            return
        try:
            _core.torch.check(self.policy, self.native_options())
        except ValueError as error:
            raise InputError(str(error)) from None

    def cap(self) -> int:
        """Bytes that each device may reserve; 0: no cap."""
        return 0 if self.memory is None else parse_size(self.memory, what="memory")

    def native_options(self) -> dict[str, str]:
        """The options of the native allocator, sizes in bytes."""
        options = {
            key: str(parse_size(value, what=f"option {key}")) if looks_like_size(value) else value
            for key, value in self.options.items()
        }
        for key, size in (("page", self.page), ("budget", self.budget)):
            if size is not None:
                options[key] = str(parse_size(size, what=key))
        return options


def _check_choice(what: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f"{what} {value!r} is unknown; there are: {', '.join(known)}")
