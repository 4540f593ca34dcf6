"""Where a topic's partitions ended a moment ago, and whether a view is there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

SECONDS_MAX: Final = 10.0
"""Whoever has not heard of the ends for so long does not know whether it has caught up."""


@dataclass(frozen=True, slots=True)
class Ends:
    """The offsets behind what could be read of each partition at some time."""

    partition_count: int = 0
    offsets: Mapping[int, int] = field(default_factory=dict)
    """Without those that are not known."""
    asked_at: float = 0.0

    @classmethod
    def of(
        cls,
        partition_count: int,
        found: Mapping[int, int],
        asked_at: float,
        positions: Mapping[int, int],
    ) -> Self:
        """Return the ends that were found by someone who had been at these positions before.

        An end before that is another log's: the topic was created anew, or cut.
        """
        sound = {each: end for each, end in found.items() if end >= positions.get(each, 0)}
        return cls(partition_count, sound, asked_at)

    def are_reached(self, positions: Mapping[int, int], monotonic: float) -> bool:
        """Whether positions are at all of them or behind, and they are known and not too old."""
        if not self.partition_count or len(self.offsets) < self.partition_count:
            return False
        if monotonic - self.asked_at > SECONDS_MAX:
            return False
        return all(positions.get(each, 0) >= end for each, end in self.offsets.items())
