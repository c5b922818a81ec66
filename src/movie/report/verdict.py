"""What a run means, in one short sentence."""

from movie.evaluate.comparison import Run
from movie.sizes import format_size

_SAME = 0.005  # a difference below half a percent is nobody's reason to switch


def verdict(run: Run, native: Run | None) -> str:
    """The sentence for `run`; `native` is the run of PyTorch's own allocator on the same device, where there is one."""
    if not run.completed:
        return _failure(run)
    need = f"fits in {format_size(run.peak_reserved)}"
    if run.is_bound:
        return f"{need}, the least that any allocator can need"
    if native is None or native is run:
        return need
    if not native.completed:
        return f"{need}, where native runs out of memory"
    saved = native.peak_reserved - run.peak_reserved
    if abs(saved) <= _SAME * native.peak_reserved:
        return f"{need}, as native does"
    return f"{need}, {format_size(abs(saved))} {'less' if saved > 0 else 'more'} than native"


def _failure(run: Run) -> str:
    done = 100 * run.failed_at // max(run.rows, 1)
    reason = run.failure.strip().splitlines()
    return f"out of memory at {done} %" + (f": {reason[0]}" if reason else "")
