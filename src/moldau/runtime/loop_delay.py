"""How late the event loop comes to what is due."""

from typing import Final

from moldau.runtime.environment import NodeEnvironment
from moldau.runtime.metrics import Histogram

INTERVAL_SECONDS: Final = 0.1


class LoopDelay:
    """Measures how late the loop comes to what was due."""

    def __init__(self, histogram: Histogram, environment: NodeEnvironment) -> None:
        self._histogram = histogram
        self._environment = environment
        self._wait()

    def close(self) -> None:
        """Measure no more."""
        self._timer.cancel()

    def _wait(self) -> None:
        environment = self._environment
        self._due = environment.stopwatch() + INTERVAL_SECONDS
        self._timer = environment.at(environment.monotonic() + INTERVAL_SECONDS, self._measure)

    def _measure(self) -> None:
        self._histogram.observe(max(0.0, self._environment.stopwatch() - self._due))
        self._wait()
