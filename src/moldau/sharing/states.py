"""What may be said of records that a share group reads, as it is recorded and as clients say it."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from moldau.kernel.ids import Offset


class RecordState(IntEnum):
    """Where a record is on its way; the numbers are recorded."""

    AVAILABLE = 0
    ACQUIRED = 1  # never recorded: a lock does not outlive its leader
    ACKNOWLEDGED = 2
    ARCHIVING = 3  # given up, and on its way to a dead letter topic
    ARCHIVED = 4


FIRST_FINAL: Final = RecordState.ACKNOWLEDGED
"""From this state on no member gets the record any more."""


class AcknowledgementKind(IntEnum):
    """What a member says of a record that it got."""

    GAP = 0  # there was none at this offset
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class StateBatch(NamedTuple):
    """Consecutive offsets with the same state."""

    first: Offset
    last: Offset
    state: RecordState
    delivery_count: int

    @property
    def rank(self) -> tuple[int, int]:
        """What is later: a record is delivered more often, and then becomes final."""
        return self.delivery_count, self.state


class ShareSpan(NamedTuple):
    """Consecutive offsets, both ends included."""

    first: Offset
    last: Offset


class FetchedBatches(NamedTuple):
    """What was read of a log for a share group."""

    offset: Offset
    """Where reading began."""
    batches: Sequence[ShareSpan]
    aborted: Sequence[ShareSpan] = ()
    """Batches among them that the group must not see."""


class Acquired(NamedTuple):
    """Offsets that a member has locked, and how often they were delivered with this time."""

    first: Offset
    last: Offset
    delivery_count: int


class Acknowledgement(NamedTuple):
    """What a member says of consecutive offsets: one type for all, or one for each."""

    first: Offset
    last: Offset
    types: tuple[AcknowledgementKind, ...]


class StateWrite(NamedTuple):
    """What has to be recorded of a share partition."""

    number: int
    """By which the partition knows it when it is told the outcome; 0 if nothing waits for that."""
    state_epoch: int
    start_offset: Offset
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]
