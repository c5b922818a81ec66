"""The two recorded training runs that ship with the package, and the cards that `movie demo` replays them on."""

from pathlib import Path

_FOLDER = Path(__file__).parent / "data"

# What the runs are, by file name.
TITLES = {
    "hf_opt1.3b_R_var": "OPT-1.3B with the Hugging Face trainer: recomputation, batches of varying length, one stream",
    "fsdp2_opt6.7b_R_w8": "OPT-6.7B with FSDP2 on 8 GPUs: recomputation, batches of varying length, three streams",
}


def recordings() -> list[Path]:
    """The files, in the order in which the demonstration shows them."""
    return [_FOLDER / f"{name}.parquet" for name in TITLES]


def tight_card(peak_requested: int) -> int:
    """Bytes of a card that the run just fits: 1 % above what it asks for at its peak, and 64 MiB."""
    return peak_requested * 101 // 100 + 64 * 2**20
