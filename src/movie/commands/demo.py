"""`movie demo`: two recorded training runs on ample and tight cards."""

from rich.console import Console
from rich.text import Text


def demo() -> None:
    """Replay two recorded training runs under PyTorch's allocator and MOVie, in seconds and without a GPU."""
    # Imported here, so that `movie --help` does not wait for numpy and pyarrow.
    from movie.commands.progress import watched  # noqa: PLC0415
    from movie.demonstration import TITLES, allocators, real_bytes, recordings, seen, tight_card  # noqa: PLC0415
    from movie.evaluate.comparison import Conditions, compare  # noqa: PLC0415
    from movie.report.terminal import show  # noqa: PLC0415

    console = Console(highlight=False)
    pairs = []
    for path, title in zip(recordings(), TITLES.values(), strict=True):
        with watched(path) as progress:
            ample = compare(path, allocators(), Conditions(), progress=progress)
            card = Conditions(memory=tight_card(ample.facts.peak_requested))
            tight = compare(path, allocators(), card, progress=progress)
        for comparison in (ample, tight):
            show(comparison, console, title=title)
            console.print()
        pairs.append((ample, tight))
    for sentence in seen(pairs):
        console.print(Text(sentence))
    console.print(Text(real_bytes()))
