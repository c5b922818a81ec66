"""Does a replay do what the program did? The allocator is the same object; this holds the ways around it to each other.

    python -m movie.evaluate.live.same [NAME...]

runs each program under MOVie on a phantom card whose work is late, each time by another number of launches, records its
requests and when MOVie saw work finished, and replays them through the same allocator on a model device where work is
finished when that was seen. Prints both; exits with 1 if the peak reserved differs by more than
a page, or views or waits differ at all.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from movie.errors import InputError
from movie.evaluate.live.cases import AUTO, CASES, LEAN, Case, Way
from movie.evaluate.live.measure import CARD, measure
from movie.evaluate.replay import replay
from movie.phantom.cards import find_card
from movie.trace import read_trace

PAGE = 2 << 20
LAG, SEED = 300, 1


def both(case: Case, way: Way) -> tuple[dict[str, Any], dict[str, Any]]:
    """What happened live, and in the replay of it: peak reserved, views, edits and waits of streams."""
    with TemporaryDirectory(prefix="movie-live-") as folder:
        file = Path(folder) / "snapshot.pickle"
        live = measure(case, way, lag=LAG, seed=SEED, MOVIE_LIVE_SNAPSHOT=str(file))
        trace = read_trace(file)[0]
    card = find_card(CARD)
    again = replay(trace, way.name, memory=card.memory - card.context, lag=None, as_seen=True)
    return (
        {
            "reserved": live["reserved_by_the_card"],
            "views": live["views"],
            "waits": live["waits"],
        },
        {"reserved": again.peak_reserved, "views": dict(again.views), "waits": again.driver["stream_wait"]},
    )


def same(live: dict[str, Any], again: dict[str, Any]) -> bool:
    """Whether they agree."""
    close = abs(live["reserved"] - again["reserved"]) <= PAGE
    return bool(close and live["views"] == again["views"] and live["waits"] == again["waits"])


def _text(said: dict[str, Any]) -> str:
    views = ", ".join(f"{count} {what}" for what, count in said["views"].items())
    return f"reserved {said['reserved']:,}, views {views}, waits {said['waits']}"


def main(arguments: Sequence[str]) -> int:
    """0: all agree; 1: one does not; 2: a program failed."""
    differ = False
    for case in CASES:
        if arguments and not any(name in case.name for name in arguments):
            continue
        for way in (AUTO, LEAN):
            try:
                live, again = both(case, way)
            except InputError as error:
                print(f"movie: {error}", file=sys.stderr)
                return 2
            agree = same(live, again)
            differ |= not agree
            print(f"{case.name}, {way.name}: {'the same' if agree else 'DIFFERENT'}: {_text(live)}", flush=True)
            if not agree:
                print(f"  replayed: {_text(again)}", flush=True)
    return int(differ)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
