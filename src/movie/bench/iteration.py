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
        """The mean over the run, its first iterations included: computing, driver calls and stalls, one after another.

        Each row of the trace stands for an equal part of the time that the card computes; that is what a row of waiting
        costs.
        """
        return self._with(result, result.driver_seconds / self.iterations, share)

    def late_seconds(self, result: ReplayResult, share: float = USUAL) -> float:
        """The same with the driver calls of the last quarter: what an iteration of a long run comes to."""
        return self._with(result, 4 * result.driver_seconds_last_quarter / self.iterations, share)

    def _with(self, result: ReplayResult, driver: float, share: float) -> float:
        device = self.device_seconds(share)
        return device + driver + result.stalled_rows * device / max(self.rows, 1)
