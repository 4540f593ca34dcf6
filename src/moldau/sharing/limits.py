"""What a share group allows, from its settings."""

from typing import NamedTuple


class ShareLimits(NamedTuple):
    """How much of a partition may be on its way, how often and for how long."""

    in_flight_max: int
    """How many records may be between the first that is not done and the last that was acquired."""
    delivery_count_max: int
    lock_seconds: float
    may_renew: bool = True
    has_dead_letters: bool = False
    """Whether records that are given up go to a dead letter topic first (KIP-1191)."""

    @property
    def careful_from(self) -> int:
        """The count from which on fewer records are delivered together: one may be poisoned."""
        return max(2, (self.delivery_count_max + 1) // 2)


class AcquisitionWish(NamedTuple):
    """How much a member asks for."""

    records_max: int
    batch_size: int
    """How many records it would like to have together, in what it is told of as acquired."""
    is_strict: bool
    """Whether a batch of the log is cut where the maximum is reached."""
