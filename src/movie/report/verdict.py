"""What a run means, in one short sentence."""

from movie.evaluate.comparison import Run
from movie.sizes import format_size

_SAME = 0.005  # a difference below half a percent is nobody's reason to switch


def verdict(run: Run, native: Run | None) -> str:
    """The sentence for `run`; `native` is the run of PyTorch's own allocator on the same device, where there is one."""
    if not run.result.completed:
        return _failure(run)
    need = f"fits in {format_size(run.result.peak_reserved)}{_retries(run)}"
    if run.is_bound:
        return f"{need}, the least that any allocator can need"
    if native is None or native is run:
        return need
    if not native.result.completed:
        return f"{need}, where native runs out of memory"
    saved = native.result.peak_reserved - run.result.peak_reserved
    if abs(saved) <= _SAME * native.result.peak_reserved:
        return f"{need}, as native does"
    return f"{need}, {format_size(abs(saved))} {'less' if saved > 0 else 'more'} than native"


def _retries(run: Run) -> str:
    """What it took to fit, where it was tight."""
    count = run.result.retries
    return f" after flushing its cache {'once' if count == 1 else f'{count:,} times'}" if count else ""


def _failure(run: Run) -> str:
    if run.is_bound:
        return f"does not fit: at least {format_size(run.result.peak_requested)} are needed at a time"
    done = 100 * (run.result.failed_at or 0) // max(run.rows, 1)
    return f"out of memory at {done} % of the trace"


def report(run: Run) -> str:
    """What the allocator itself says about why it failed, in one line; empty where it did not."""
    text = " ".join(run.result.failure.split())
    return "" if run.is_bound else text.removeprefix("out of memory: ")
