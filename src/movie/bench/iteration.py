"""How long an iteration takes, as a model: the card computes, the driver is called, and streams wait."""

from dataclasses import dataclass

from movie.evaluate.replay import ReplayResult

PEAK = 312e12  # operations a second of an A100 on dense matrices in half precision, by NVIDIA's data sheet
SHARES = (0.2, 0.4, 0.6)  # of that peak, which training reaches
USUAL = 0.4


@dataclass(frozen=True)
class Iteration:
    """A training iteration. `operations`: floating-point, of one rank. `rows`: of the trace, whole run."""

    operations: float
    iterations: int
    rows: int

    def device_seconds(self, share: float = USUAL) -> float:
        """What the card computes for."""
        return self.operations / (share * PEAK)

    def seconds(self, result: ReplayResult, share: float = USUAL) -> float:
        """The mean over the run, its first iterations included: computing, driver calls and stalls."""
        return self._with(result, result.driver_seconds / self.iterations, share)

    def late_seconds(self, result: ReplayResult, share: float = USUAL) -> float:
        """The same with the driver calls of the last quarter: what an iteration of a long run comes to."""
        return self._with(result, 4 * result.driver_seconds_last_quarter / self.iterations, share)

    def stall_seconds(self, result: ReplayResult, share: float = USUAL) -> float:
        """What waits cost an iteration at most: as if they came one after another, each keeping all else from running.

        Each row of the trace stands for an equal part of the time that the card computes.
        """
        return result.stalled_rows * self.device_seconds(share) / max(self.rows, 1)

    def _with(self, result: ReplayResult, driver: float, share: float) -> float:
        return self.device_seconds(share) + driver + self.stall_seconds(result, share)
