"""What MOVie costs in the loop: host time of a training iteration under MOVie against PyTorch's own allocator.

    python -m movie.evaluate.live.cost [PAIRS]

On the phantom kernels are empty, so an iteration is host work, and the allocator shows. Runs PAIRS (default 20) pairs
of processes, one under each allocator, in alternating order, and prints the ratio of the two medians for each pair: of
the processor's time, which other programs on the machine disturb less than they do the clock. Exits with 1 if the
median ratio is above 1.03 or the upper end of its 95 % interval above 1.05.
"""

import sys
from collections.abc import Sequence
from statistics import median

from movie.errors import InputError
from movie.evaluate.live.cases import AUTO, NATIVE, Case, Way
from movie.evaluate.live.measure import measure

MEDIAN_LIMIT, UPPER_LIMIT = 1.03, 1.05
WARM = 6  # iterations that do not count
CASE = Case(
    "opt-1.3b N fix",
    "movie.workloads.causal",
    ("--model", "opt-1.3b", "--strategy", "N", "--lengths", "fix", "--batch", "4", "--iterations", "36"),
)


def iteration_seconds(way: Way) -> float:
    """Median processor time of an iteration once warm."""
    return float(median(measure(CASE, way)["step_processor_seconds"][WARM:]))


def upper_bound(ratios: Sequence[float]) -> float:
    """The upper end of the 95 % interval of the median, from the order of the values: no shape is assumed."""
    ordered = sorted(ratios)
    # The k-th largest is above the median with at most 2.5 % left, by the binomial distribution.
    tail, term, k = 0.0, 0.5 ** len(ordered), 0
    while tail + term <= 0.025:
        tail += term
        term *= (len(ordered) - k) / (k + 1)
        k += 1
    return ordered[-max(k, 1)]


def main(arguments: Sequence[str]) -> int:
    """0: within the limits; 1: not; 2: bad usage, or a program failed."""
    pairs = int(arguments[0]) if arguments and arguments[0].isdecimal() else 20
    ratios = []
    try:
        for pair in range(pairs):
            seconds = {}
            for way in (NATIVE, AUTO) if pair % 2 else (AUTO, NATIVE):
                seconds[way.name] = iteration_seconds(way)
            ratios.append(seconds[AUTO.name] / seconds[NATIVE.name])
            print(
                f"pair {pair + 1}: native {1e3 * seconds[NATIVE.name]:.2f} ms, movie "
                f"{1e3 * seconds[AUTO.name]:.2f} ms an iteration, ratio {ratios[-1]:.3f}",
                flush=True,
            )
    except InputError as error:
        print(f"movie: {error}", file=sys.stderr)
        return 2
    middle, upper = median(ratios), upper_bound(ratios)
    print(f"median ratio {middle:.3f} (limit {MEDIAN_LIMIT}), 95 % upper bound {upper:.3f} (limit {UPPER_LIMIT})")
    return int(middle > MEDIAN_LIMIT or upper > UPPER_LIMIT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
