"""The smallest size that will do, where nobody promises that a larger one does as well."""

from collections.abc import Callable
from dataclasses import dataclass

PROBES = 8  # sizes above the found one that are tried as well
_LARGEST = 1 << 46  # bytes: nothing larger is tried


@dataclass(frozen=True)
class Smallest:
    """`size`: the smallest that does, None where none does. `fails_above`: larger ones that were tried and do not."""

    size: int | None
    fails_above: tuple[int, ...] = ()


def smallest(does: Callable[[int], bool], low: int, high: int, step: int, probes: int = PROBES) -> Smallest:
    """The smallest multiple of `step` from `low` on for which `does` holds, by bisection.

    `high`: a size that is likely to do; if it does not, larger ones are tried. Bisection is right where doing is
    monotone, and that is checked: `probes` sizes above the found one, ever further away, must do as well.
    """
    tried: dict[int, bool] = {}

    def holds(count: int) -> bool:
        if count not in tried:
            tried[count] = does(count * step)
        return tried[count]

    below = max(-(-low // step), 1)
    found = below
    if not holds(below):
        found = max(-(-high // step), below + 1)
        while not holds(found):
            found += found - below
            if found * step > _LARGEST:
                return Smallest(None)
        top = found
        while found - below > 1:
            middle = (below + found) // 2
            if holds(middle):
                found = middle
            else:
                below = middle
    else:
        top = max(-(-high // step), found + 1)
    for distance in _distances(top - found, probes):
        holds(found + distance)
    fails = sorted(count * step for count, held in tried.items() if count > found and not held)
    return Smallest(found * step, tuple(fails))


def _distances(most: int, probes: int) -> list[int]:
    """1, and then at most as many as are tried, each about a same factor further, up to `most`."""
    if most < 1:
        return []
    return sorted({round(most ** (probe / max(probes - 1, 1))) for probe in range(probes)})
