"""What each part of the MOVie allocator is worth: it is taken away, and recorded runs are replayed without it.

    python benchmarks/ablations.py [--quick] [--only NAME]... [--costs NAME] [--output FILE]

writes docs/ablations.md: a table for each part, on tight cards (1.01 times the peak requested bytes, and 64 MiB) and on
ample ones. The text between the marks of a conclusion is kept from the file as it was; all figures come from here. The
runs are those of MOVIE_DATA: `recordings` without graph_step, and `gmlake-traces`. --quick takes the two recordings
that ship with the package instead, and prints without writing, unless --output says where.
"""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from movie import _core
from movie.demonstration import recordings
from movie.evaluate.columns import columns_of
from movie.evaluate.fit import card_of
from movie.evaluate.replay import ReplayResult, replay
from movie.trace import Trace, read_trace

ROOT = Path(__file__).parents[1]
TIGHT = Fraction("1.01")
CARDS = ("tight", "ample")
MIB = 1 << 20


@dataclass(frozen=True)
class Variant:
    """An allocator with options, on a device that lags so many rows (None: never done)."""

    label: str
    allocator: str = "movie"
    options: tuple[tuple[str, str], ...] = ()
    lag: int | None = 1000

    @property
    def key(self) -> tuple[object, ...]:
        """What decides about a replay."""
        return (self.allocator, self.options, self.lag)


@dataclass(frozen=True)
class Ablation:
    name: str
    title: str
    about: str
    variants: tuple[Variant, ...]


def _with(label: str, allocator: str = "movie", lag: int | None = 1000, **options: object) -> Variant:
    return Variant(label, allocator, tuple((key, str(value)) for key, value in options.items()), lag)


def _combiners(allocator: str, pages: Sequence[int | None]) -> list[Variant]:
    """Each combiner at each page size in MiB; None: mixed sizes."""
    short = {"dynamic": "dynamic", "greedy": "greedy", "best-fit-decreasing": "best fit decreasing"}
    variants = []
    for page in pages:
        size: dict[str, object] = {"largest_page": 32 * MIB} if page is None else {"page": page * MIB}
        for combiner, text in short.items():
            label = f"{text}, {'mixed' if page is None else f'{page} MiB'}"
            variants.append(_with(label, allocator, **size, combine=combiner))
    return variants


def _both(*variants: tuple[str, dict[str, str]]) -> tuple[Variant, ...]:
    """The variants under both policies."""
    return tuple(
        _with(f"{label}, {policy}", allocator, **options)
        for policy, allocator in (("auto", "movie"), ("lean", "movie-lean"))
        for label, options in variants
    )


ABLATIONS = (
    Ablation(
        "combine",
        "How extents are chosen",
        "The dynamic programme, against taking the largest extents first (as GMLake does) and against best fit with "
        "decreasing sizes, at mixed page sizes and three single ones.",
        tuple(_combiners("movie", (None, 2, 8, 32))),
    ),
    Ablation(
        "combine-lean",
        "How extents are chosen, policy lean",
        "The same where every free page is used before memory grows, so that more is put together.",
        tuple(_combiners("movie-lean", (None, 2, 8, 32))),
    ),
    Ablation(
        "views",
        "Views kept, edited, extended",
        "Views that outlive their block, are edited for the next and extended for a longer one; without extension; "
        "kept but not edited; neither.",
        _both(
            ("kept, edited, extended", {}),
            ("kept, edited, not extended", {"extend_views": "off"}),
            ("kept, not edited", {"edit_views": "off"}),
            ("not kept", {"keep_views": "off", "edit_views": "off"}),
        ),
    ),
    Ablation(
        "page",
        "Page size",
        "The unit of physical memory: mixed sizes that follow the room left on the card, or one size throughout. "
        "Larger ones take fewer calls and leave larger odd ends. Under policy lean 2 MiB is the default.",
        (
            _with("mixed"),
            *(_with(f"{page} MiB", page=page * MIB) for page in (2, 4, 8, 16, 32, 64)),
            _with("2 MiB, lean", "movie-lean"),
            _with("mixed, lean", "movie-lean", largest_page=32 * MIB),
        ),
    ),
    Ablation(
        "policy",
        "Policy",
        "`auto` grows while the card has room and rearranges then; `lean` rearranges first.",
        (_with("auto"), _with("lean", "movie-lean")),
    ),
    Ablation(
        "lifetimes",
        "What stays and what goes",
        "Whether policy `lean` keeps blocks of sizes that live long apart from the others.",
        (_with("apart", "movie-lean"), _with("mixed", "movie-lean", lifetimes="off")),
    ),
    Ablation(
        "cross-stream",
        "Memory of other streams",
        "Whether memory that was freed on another stream is used, after a wait on the device.",
        _both(("used", {}), ("not used", {"cross_stream": "off"})),
    ),
    Ablation(
        "partial-ends",
        "Partial pages at the ends of views",
        "Whether the odd end of a request may lie in a page that is only partly free.",
        _both(("used", {}), ("not used", {"partial_ends": "off"})),
    ),
    Ablation(
        "lag",
        "How late the device is",
        "Rows until queued work is done. Recordings that tell when blocks were free again tell it for those blocks.",
        (_with("0 rows", lag=0), _with("1,000 rows"), _with("never", lag=None)),
    ),
)


@dataclass(frozen=True)
class Run:
    """A recorded run, ready to be replayed many times."""

    name: str
    trace: Trace
    columns: _core.TraceColumns
    requested: int

    def play(self, variant: Variant, card: str, costs: str) -> ReplayResult:
        return replay(
            self.trace,
            variant.allocator,
            dict(variant.options),
            memory=card_of(TIGHT, self.requested) if card == "tight" else None,
            lag=variant.lag,
            costs=costs,
            validate=False,
            columns=self.columns,
        )


def load(paths: Sequence[Path]) -> list[Run]:
    runs = []
    for path in paths:
        (trace,) = read_trace(path)
        columns = columns_of(trace)
        runs.append(
            Run(
                path.name.split(".pickle")[0].split(".bin")[0].split(".parquet")[0],
                trace,
                columns,
                _core.floor_of(columns).requested,
            )
        )
    return runs


def all_recordings() -> list[Path]:
    folder = Path(os.environ.get("MOVIE_DATA", ROOT.parent / "shared" / "data"))
    paths = sorted((folder / "recordings").glob("*.pickle.gz")) + sorted((folder / "gmlake-traces").glob("*.bin.xz"))
    if not paths:
        sys.exit(f"no recordings in {folder}: set MOVIE_DATA to the folder that has them, or use --quick")
    return [path for path in paths if not path.name.startswith("graph_step")]


Results = dict[tuple[object, ...], ReplayResult]


def play_all(runs: Sequence[Run], ablations: Sequence[Ablation], costs: str) -> Results:
    """Every replay that some table needs, once, on all cores (a replay does not hold the interpreter)."""
    wanted = {
        (variant.key, card, run.name): (variant, card, run)
        for ablation in ablations
        for variant in ablation.variants
        for card in CARDS
        for run in runs
    }
    results: Results = {}
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        futures = {pool.submit(run.play, variant, card, costs): key for key, (variant, card, run) in wanted.items()}
        for future in as_completed(futures):
            results[futures[future]] = future.result()
            if sys.stderr.isatty():
                print(f"\r{len(results)} of {len(futures)} replays", end="", file=sys.stderr, flush=True)
    return results


HEADINGS = (
    *(
        "card, runs",
        "variant",
        "completed",
        "reserved / requested",
        "driver s to first peak",
        "driver s",
        "driver s last ¼",
    ),
    *("pages mapped in views", "views", "edits", "waits", "stalled rows", "host ns"),
)


def table(ablation: Ablation, runs: Sequence[Run], results: Results) -> list[str]:
    lines = [f"| {' | '.join(HEADINGS)} |", "|---|---|" + "--:|" * (len(HEADINGS) - 2)]
    for card in CARDS:
        of = {v: {run.name: results[v.key, card, run.name] for run in runs} for v in ablation.variants}
        completed = {v: {name for name, result in by_run.items() if result.completed} for v, by_run in of.items()}
        # Sums are over the same runs for all variants, so they can be compared.
        able = [names for names in completed.values() if 2 * len(names) >= len(runs)]
        common = sorted(set.intersection(*able)) if able else []
        for variant in ablation.variants:
            cells = [f"{card}, {len(common)}", variant.label, f"{len(completed[variant])} of {len(runs)}"]
            summed = common if common and set(common) <= completed[variant] else []
            cells += _sums([of[variant][name] for name in summed]) if summed else ["–"] * (len(HEADINGS) - 3)
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _sums(results: Sequence[ReplayResult]) -> list[str]:
    def total(name: str) -> float:
        return sum(getattr(result, name) for result in results)

    return [
        f"{total('peak_reserved') / total('peak_requested'):.4f}",
        *(
            f"{total(name):.4f}"
            for name in ("driver_seconds_to_first_peak", "driver_seconds", "driver_seconds_last_quarter")
        ),
        f"{sum(max(r.driver['map'] - r.driver['create'], 0) for r in results):,}",
        f"{sum(r.views['created'] for r in results):,}",
        f"{sum(r.views['edited'] for r in results):,}",
        f"{sum(r.driver['stream_wait'] for r in results):,}",
        f"{total('stalled_rows'):,}",
        f"{total('host_ns_per_event') / len(results):.0f}",
    ]


def _mark(name: str) -> tuple[str, str]:
    return f"<!-- conclusion: {name} -->", f"<!-- end: {name} -->"


def conclusions(text: str) -> dict[str, str]:
    """What a person wrote under the tables."""
    return dict(re.findall(r"<!-- conclusion: (\S+) -->\n(.*?)<!-- end: \1 -->", text, re.DOTALL))


def document(
    runs: Sequence[Run], ablations: Sequence[Ablation], results: Results, command: str, costs: str, old: str
) -> str:
    kept = conclusions(old)
    lines = [
        "# Ablations",
        "",
        f"What each part of the allocator is worth. Written by `{command}`; only the conclusions are by hand.",
        "",
        f"{len(runs)} recorded runs, each on a tight card ({float(TIGHT):g} × peak requested + 64 MiB) and on an ample "
        f"one; modelled costs `{costs}`; a device that is 1,000 rows late and `movie` with its defaults where nothing "
        "else is said. The first variant of each table is the default. `completed`: without running out of memory. "
        "Everything else is a sum (`reserved / requested` the ratio of two, `host ns` a mean) over the runs that every "
        "variant completes, their number beside the card; variants that complete fewer than half of the runs are left "
        "out of this. `pages mapped in views`: map calls beyond the one that each new page takes at its home. "
        "[replay.md](replay.md) explains the others.",
        "",
        "Runs: " + ", ".join(run.name for run in runs) + ".",
    ]
    for ablation in ablations:
        begin, end = _mark(ablation.name)
        lines += ["", f"## {ablation.title}", "", ablation.about, "", *table(ablation, runs, results), "", begin]
        lines += [kept.get(ablation.name, "\n").strip("\n"), end]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="only the recordings that ship with the package")
    parser.add_argument("--only", action="append", choices=[one.name for one in ABLATIONS], help="these tables only")
    parser.add_argument("--costs", default="per-call", help="the cost table of the driver's calls")
    parser.add_argument("--output", type=Path, help="the file to write")
    arguments = parser.parse_args()
    ablations = [one for one in ABLATIONS if arguments.only is None or one.name in arguments.only]
    runs = load(recordings() if arguments.quick else all_recordings())
    results = play_all(runs, ablations, arguments.costs)
    output = arguments.output
    if output is None and not arguments.quick and arguments.only is None:
        output = ROOT / "docs" / "ablations.md"
    old = output.read_text() if output is not None and output.exists() else ""
    words = ["python", "benchmarks/ablations.py", *(["--quick"] if arguments.quick else [])]
    words += [f"--only {name}" for name in arguments.only or ()]
    words += [f"--costs {arguments.costs}"] if arguments.costs != "per-call" else []
    text = document(runs, ablations, results, " ".join(words), arguments.costs, old)
    if output is None:
        print(text, end="")
    else:
        output.write_text(text)
        print(f"{output}: {len(results)} replays of {len(runs)} runs", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
