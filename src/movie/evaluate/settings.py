"""The settings of PyTorch's allocator that a trace was recorded with, as options of `native`."""

from collections.abc import Mapping
from typing import Any

from movie.trace.model import Trace

MIB = 1 << 20


def native_options(trace: Trace) -> dict[str, str]:
    """Options of `native` from the recorded `allocator_settings`, and the split limit of a case.

    Sizes in bytes, as texts. Keys that say nothing (unlimited, off, unknown) are left out, and so is the tie rule,
    which no snapshot names: see movie.evaluate.fidelity. Raises ValueError for a setting that makes no sense.
    """
    settings = trace.settings
    options: dict[str, str] = {}
    limit = _integer(settings, "max_split_size")
    if limit > 0:  # -1: unlimited
        options["max_split_size"] = str(limit)
    if trace.split_limit:
        options["max_split_size"] = str(trace.split_limit)
    threshold = settings.get("garbage_collection_threshold", 0)
    if isinstance(threshold, int | float) and threshold > 0:
        options["garbage_collection_threshold"] = str(threshold)
    divisions = settings.get("roundup_power2_divisions")
    if isinstance(divisions, Mapping) and any(divisions.values()):
        # Keys are the sizes in MiB from which an entry applies: '1', '2', '4', ... '32768'.
        options["roundup_power2_divisions"] = "/".join(str(_integer(divisions, str(1 << i))) for i in range(16))
    segment = _integer(settings, "large_segment_size")
    if segment > 0:
        options["large_segment_size"] = str(segment)
    # The effective value may be given in the configuration text alone.
    for item in str(settings.get("PYTORCH_CUDA_ALLOC_CONF", "")).replace(" ", "").split(","):
        key, _, value = item.partition(":")
        if key in ("large_segment_size_mb", "max_non_split_rounding_mb") and value.isdecimal():
            options.setdefault(key.removesuffix("_mb"), str(int(value) * MIB))
    return options


def _integer(settings: Mapping[str, Any], key: str) -> int:
    value = settings.get(key, 0)
    if not isinstance(value, int):
        raise ValueError(f"allocator_settings: {key} is {value!r}, not a number")
    return value
