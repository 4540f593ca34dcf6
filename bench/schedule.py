"""How long races take."""

from dataclasses import dataclass

PAUSE_SECONDS = 2.0
"""Seconds of a round beside its load, on average: topics, memory at hand, a client started."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long a race warms each broker, and how often and how long it measures them."""

    warm_seconds: float = 30.0
    round_seconds: float = 5.0
    rounds: int = 5

    @property
    def race_seconds(self) -> float:
        """Return the time of one race with two brokers."""
        warm = self.warm_seconds + PAUSE_SECONDS
        return 2 * (warm + self.rounds * (self.round_seconds + PAUSE_SECONDS))
