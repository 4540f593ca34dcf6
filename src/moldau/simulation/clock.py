"""A machine's clocks: how they see the world's time."""

from math import ceil
from typing import Final

from moldau.kernel.clock import Instant
from moldau.simulation.scheduler import MILLISECOND, SECOND, Scheduler

EPOCH_MS: Final = 1_767_225_600_000
"""The true wall time when a world begins, 2026-01-01."""


class MachineClock:
    """A wall clock with an offset and jumps, and a monotonic clock that begins at each boot.

    Both drift together. The monotonic clock never goes back while the machine runs.
    """

    def __init__(self, scheduler: Scheduler, *, offset_ms: int = 0, drift_ppm: float = 0.0) -> None:
        self._scheduler = scheduler
        self._rate = 1 + drift_ppm * 1e-6
        self._anchor_ns = scheduler.now
        self._wall_ms = EPOCH_MS + offset_ms + scheduler.now / MILLISECOND
        self._monotonic = 0.0

    def boot(self, monotonic: float) -> None:
        """Begin the monotonic clock anew, at a reading that says nothing."""
        self._anchor()
        self._monotonic = monotonic

    def jump(self, milliseconds: int) -> None:
        """Move the wall clock at once."""
        self._wall_ms += milliseconds

    def drift(self, ppm: float) -> None:
        """Run so much faster than the world from now on, or slower."""
        self._anchor()
        self._rate = 1 + ppm * 1e-6

    def monotonic(self, time_ns: int) -> float:
        """Return the monotonic clock's seconds at a time of the world."""
        return self._monotonic + (time_ns - self._anchor_ns) * self._rate / SECOND

    def wall_ms(self, time_ns: int) -> int:
        """Return the wall clock's milliseconds at a time of the world."""
        return int(self._wall_ms + (time_ns - self._anchor_ns) * self._rate / MILLISECOND)

    def instant(self, time_ns: int) -> Instant:
        """Return both at a time of the world."""
        return Instant(self.monotonic(time_ns), self.wall_ms(time_ns))

    def time_of(self, monotonic: float) -> int:
        """Return the first time of the world at which the monotonic clock shows a reading."""
        waited = (monotonic - self._monotonic) / self._rate * SECOND
        return self._anchor_ns + ceil(waited)

    def _anchor(self) -> None:
        now = self._scheduler.now
        passed = (now - self._anchor_ns) * self._rate
        self._monotonic += passed / SECOND
        self._wall_ms += passed / MILLISECOND
        self._anchor_ns = now
