"""How long combine() takes to choose, against mapping pages: requests of 4 GiB on indexes of many free extents.

    python benchmarks/combine_time.py

Pages of 2 MiB (2,048 a request), extents of log-uniform sizes too short to hold the request alone; microseconds of
processor time, so that other work on the machine does not count.
"""

import numpy as np

from movie import _core

REQUEST = 2048  # pages
INSTANCES = 500


def extents(random: np.random.Generator, count: int, sizes: int) -> list[tuple[int, int, int]]:
    distinct = np.unique(np.exp(random.uniform(0, np.log(REQUEST - 1), sizes * 4)).astype(int))
    distinct = random.choice(distinct, size=min(sizes, len(distinct)), replace=False)
    pages = np.concatenate([distinct, random.choice(distinct, size=count - len(distinct))])
    return [(int(p), 0, int(b)) for p, b in zip(pages, random.integers(0, 3, count), strict=True)]


def main() -> None:
    random = np.random.default_rng(7)
    print(f"{'extents':>8} {'sizes':>6}  {'combiner':20} {'median':>8} {'p99':>8}  µs; mean pieces and remnant")
    for count, sizes in ((256, 32), (256, 64), (512, 64), (1024, 128)):
        instances = [extents(random, count, sizes) for _ in range(INSTANCES)]
        for combiner in ("dynamic", "greedy", "best-fit-decreasing"):
            times = [_core.time_combine(parts, REQUEST, combiner) for parts in instances]
            costs = [_core.choice_cost(parts, _core.combine(parts, REQUEST, combiner) or []) for parts in instances]
            pieces, remnant = np.mean([cost[1] for cost in costs]), np.mean([cost[2] for cost in costs])
            median, p99 = np.percentile(times, [50, 99])
            print(f"{count:8} {sizes:6}  {combiner:20} {median:8.1f} {p99:8.1f}  {pieces:6.2f} {remnant:8.1f}")


if __name__ == "__main__":
    main()
