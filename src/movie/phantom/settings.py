"""What a phantom is to be like, and how the library is told."""

from dataclasses import dataclass

from movie.errors import InputError
from movie.phantom.cards import Card
from movie.sizes import format_size

PREFIX = "MOVIE_PHANTOM_"
ALWAYS_LATE = -1  # a lag: work is done only when the host waits for it


@dataclass(frozen=True)
class PhantomSettings:
    """A phantom. `memory`: bytes of each card, None for what the real one has. `count`: how many cards.

    `lag`: launches by which the card is behind the host, `ALWAYS_LATE` for work that is never done unless waited for.
    `seed`: 0 for exactly that lag, else each piece of work its own, drawn from 0 to twice the lag. `quiet`: without
    the line that says that the card is a phantom.
    """

    card: Card
    memory: int | None = None
    count: int = 1
    lag: int = 0
    seed: int = 0
    quiet: bool = False

    def check(self) -> "PhantomSettings":
        """Itself. Raises InputError if a process would not even find room for its context on the card."""
        size = self.card.memory if self.memory is None else self.memory
        if size <= self.card.context:
            raise InputError(
                f"{format_size(size)} of memory is too little: "
                f"a context alone takes {format_size(self.card.context)} on {self.card.title}"
            )
        return self

    def variables(self) -> dict[str, str]:
        """The environment variables that the library reads."""
        values: dict[str, str | int | None] = {
            "DEVICE": self.card.name,
            "MEMORY": self.memory,
            "COUNT": self.count,
            "LAG": self.lag,
            "SEED": self.seed,
            "QUIET": int(self.quiet) or None,
        }
        return {PREFIX + key: str(value) for key, value in values.items() if value is not None}
