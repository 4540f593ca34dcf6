"""When a volume fills up: warn early, and keep a reserve for metadata and deletes."""

from dataclasses import dataclass
from enum import Enum

from moldau._native.append import Room

GIB = 1 << 30
INT64_MAX = (1 << 63) - 1


class Space(Enum):
    """How much room a log directory has."""

    AMPLE = "ample"
    LOW = "low"  # someone should act
    RESERVED = "reserved"  # records are refused; what is left is for metadata and deletes


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Below `low_bytes` free, warn; below `reserve_bytes`, refuse records.

    A state ends only `slack_bytes` above where it began, so that it does not flicker.
    """

    low_bytes: int
    reserve_bytes: int
    slack_bytes: int

    @classmethod
    def of_volume(cls, total_bytes: int) -> "Thresholds":
        """Return what suits a volume of that size: a tenth is low, a fiftieth is reserved."""
        reserve = min(total_bytes // 50, GIB)
        low = max(min(total_bytes // 10, 50 * GIB), 2 * reserve)
        return cls(low_bytes=low, reserve_bytes=reserve, slack_bytes=reserve // 2)


class FreeSpace(Room):
    """Follows the free space of one volume between two looks at it by counting what is written."""

    def __init__(self, thresholds: Thresholds, *, free_bytes: int) -> None:
        super().__init__(free_bytes=free_bytes)
        self._thresholds = thresholds
        self.space = Space.AMPLE
        self._judge()

    def observe(self, free_bytes: int) -> Space | None:
        """Take a fresh measurement; return the state if it changed, to be logged and metered."""
        self.free_bytes = free_bytes
        return self._judge()

    def exhausted(self) -> Space | None:
        """Note that the system refused a write for want of room, whatever it says is free."""
        return self.observe(0)

    def _judge(self) -> Space | None:
        before = self.space
        self.space = self._next()
        is_reserved = self.space is Space.RESERVED
        self.floor_bytes = INT64_MAX if is_reserved else self._thresholds.reserve_bytes
        return self.space if self.space is not before else None

    def _next(self) -> Space:
        limits = self._thresholds
        reserve, low = limits.reserve_bytes, limits.low_bytes
        if self.space is Space.RESERVED:
            reserve += limits.slack_bytes
        if self.space is not Space.AMPLE:
            low += limits.slack_bytes
        if self.free_bytes < reserve:
            return Space.RESERVED
        return Space.LOW if self.free_bytes < low else Space.AMPLE
