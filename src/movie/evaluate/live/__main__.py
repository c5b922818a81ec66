"""Prints, for each program, what each allocator reserved for it, and whether MOVie keeps its limits.

    python -m movie.evaluate.live [NAME...]

NAME: programs whose name contains it; without one, all. Exits with 1 if a limit is missed: `lean` uses 99.5 % of what
it reserves (several streams: 99 %), `auto` completes on a card of 1.01 times what is requested and 64 MiB without a
retry, and where iterations are alike driver work ends after the third.
"""

import sys
from collections.abc import Sequence
from typing import Any

from movie.errors import InputError
from movie.evaluate.live.cases import AUTO, CASES, LEAN, WAYS, Case
from movie.evaluate.live.measure import CARD, LAG, measure

MIB = 1 << 20
GIB = 1 << 30
SETTLED = 3  # steps


def smallest_card(requested: int) -> int:
    """Bytes, beside the context, on which `auto` has to complete."""
    return int(requested * 1.01) + 64 * MIB


def missed_limits(case: Case, figures: dict[str, dict[str, Any]], on_smallest: dict[str, Any]) -> list[str]:
    """What is wrong, in words; nothing where all limits are kept."""
    missed = []
    lean = figures[LEAN.name]
    least = 0.99 if case.streams else 0.995
    if lean["requested"] / lean["reserved"] < least:
        missed.append(f"{LEAN.name} uses less than {least:.1%}")
    if not on_smallest["completed"]:
        missed.append(f"{AUTO.name} runs out of memory on the smallest card")
    if on_smallest["retries"]:
        missed.append(f"{AUTO.name} retries {on_smallest['retries']} times on the smallest card")
    if case.alike:
        for way in (AUTO, LEAN):
            if any(figures[way.name]["calls_by_step"][SETTLED:]):
                missed.append(f"{way.name} calls the driver after step {SETTLED}")
    for name, said in [*figures.items(), ("the smallest card", on_smallest)]:
        if said["violations"]:
            missed.append(f"{name}: {said['violations']} calls broke rules of the driver")
        if said["reserved"] != said["reserved_by_the_card"] and name in (AUTO.name, LEAN.name):
            missed.append(f"{name} counts other bytes than the card")
    return missed


def _line(name: str, said: dict[str, Any]) -> str:
    calls = said["calls_by_step"]
    later = sum(calls[SETTLED:])
    return (
        f"  {name:12} reserved {said['reserved'] / GIB:7.2f} GiB  used {said['requested'] / said['reserved']:7.2%}  "
        f"retries {said['retries']:3}  driver calls {sum(calls):7,}, after step {SETTLED}: {later:6,}"
        f"{'' if said['completed'] else '  OUT OF MEMORY'}"
    )


TABLE = (
    "| program | requested | native | expandable | auto | lean | lean uses | auto completes on | driver calls, warm |",
    "|---|---|---|---|---|---|---|---|---|",
)


def table_row(case: Case, figures: dict[str, dict[str, Any]], card: int, on_smallest: dict[str, Any]) -> str:
    """Of the table in docs/pytorch.md, sizes in GiB. The last column: after the third step, of auto and of lean."""
    lean = figures[LEAN.name]
    reserved = [f"{said['reserved'] / GIB:.2f}" for said in figures.values()]
    completes = f"{card / GIB:.2f}" if on_smallest["completed"] and not on_smallest["retries"] else "no"
    warm = [sum(figures[way.name]["calls_by_step"][SETTLED:]) for way in (AUTO, LEAN)]
    cells = [
        case.name,
        f"{lean['requested'] / GIB:.2f}",
        *reserved,
        f"{lean['requested'] / lean['reserved']:.2%}",
        completes,
        f"{warm[0]:,}, {warm[1]:,}",
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str]) -> int:
    """0: all limits are kept; 1: one is missed; 2: a program failed."""
    cases = [case for case in CASES if not arguments or any(name in case.name for name in arguments)]
    if not cases:
        print(f"no program is called so; there are: {', '.join(case.name for case in CASES)}", file=sys.stderr)
        return 2
    print(f"phantom {CARD}, {LAG} launches late; used = peak requested / peak reserved")
    wrong = False
    rows = []
    for case in cases:
        try:
            figures = {way.name: measure(case, way) for way in WAYS}
            card = smallest_card(figures[AUTO.name]["requested"])
            on_smallest = measure(case, AUTO, card)
        except InputError as error:
            print(f"movie: {error}", file=sys.stderr)
            return 2
        print(f"{case.name}: {figures[AUTO.name]['requested'] / GIB:.2f} GiB requested")
        for name, said in figures.items():
            print(_line(name, said))
        print(_line(f"on {card / GIB:.2f}", on_smallest))
        for text in missed_limits(case, figures, on_smallest):
            wrong = True
            print(f"  MISSED: {text}")
        rows.append(table_row(case, figures, card, on_smallest))
        sys.stdout.flush()
    print("\n".join(["", *TABLE, *rows]))
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
