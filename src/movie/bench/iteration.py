"""How long an iteration takes, as a model: the card computes, the driver is called, and streams wait."""

from dataclasses import dataclass

from movie.evaluate.replay import ReplayResult

PEAK = 312e12  # operations a second of an A100 on dense matrices in half precision, by NVIDIA's data sheet
SHARES = (0.2, 0.4, 0.6)  # of that peak, which training reaches
USUAL = 0.4


@dataclass(frozen=True)
class Iteration:
    """A training iteration. `operations`: floating-point, of one rank.

    `rows`: allocations and frees of the stream that computes, in the whole run.
    """

    operations: float
    iterations: int
    rows: int

    def device_seconds(self, share: float = USUAL) -> float:
        """What the card computes for."""
        return self.operations / (share * PEAK)

    def seconds(self, result: ReplayResult, share: float = USUAL) -> float:
        """The mean over the run, its first iterations included: computing, driver calls and stalls."""
        driver = result.driver_seconds / self.iterations
        return self.device_seconds(share) + driver + self.stall_seconds(result, share)

    def late_seconds(self, result: ReplayResult, share: float = USUAL) -> float:
        """The same with driver calls and stalls of the last quarter: what an iteration of a long run comes to."""
        driver = 4 * result.driver_seconds_last_quarter / self.iterations
        return self.device_seconds(share) + driver + self.late_stall_seconds(result, share)

    def stall_seconds(self, result: ReplayResult, share: float = USUAL) -> float:
        """By how much waits delay the card in an iteration, streams running side by side (docs/bench.md)."""
        return result.delayed_rows * self._row_seconds(share)

    def late_stall_seconds(self, result: ReplayResult, share: float = USUAL) -> float:
        """The same in the last quarter of the run."""
        return 4 * max(result.delayed_rows_last_quarter, 0.0) * self._row_seconds(share)

    def stall_seconds_at_most(self, result: ReplayResult, share: float = USUAL) -> float:
        """As if waits came one after another, each keeping all else from running."""
        return result.stalled_rows * self._row_seconds(share)

    def _row_seconds(self, share: float) -> float:
        """Of an iteration, for a row's work that the run as a whole does once.

        Each row of the stream that computes stands for an equal part of the time.
        """
        return self.device_seconds(share) / max(self.rows, 1)
