"""What happens to a quorum's member, and what it wants done."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from moldau.consensus.quorum_state import Election
from moldau.kernel.ids import LeaderEpoch, Offset


class QuorumLog(Protocol):
    """The metadata log as the quorum sees it; effects change it before the next event."""

    @property
    def end_offset(self) -> Offset:
        """Where the next record goes."""

    @property
    def last_epoch(self) -> LeaderEpoch:
        """The epoch of the last record, or of the latest snapshot if there is none; else 0."""


@dataclass(frozen=True, slots=True)
class Start:
    """The log, the voters and the last election are loaded."""


@dataclass(frozen=True, slots=True)
class Propose:
    """Records to append together, as the values of their record batch."""

    values: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class UpgradeKraftVersion:
    """From now on the voters stand in the log (KIP-853)."""


@dataclass(frozen=True, slots=True)
class Synced:
    """Everything below the offset is on our disk."""

    end_offset: Offset


@dataclass(frozen=True, slots=True)
class SnapshotWritten:
    """A snapshot of everything below the offset is on our disk."""

    end_offset: Offset


@dataclass(frozen=True, slots=True)
class StorageFailed:
    """The log could not be written or synced; it is never tried again."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The node shuts down."""


QuorumEvent: TypeAlias = (
    Start | Propose | UpgradeKraftVersion | Synced | SnapshotWritten | StorageFailed | Stop
)


@dataclass(frozen=True, slots=True)
class SaveElection:
    """Make the election durable before the next effect: nothing may go out that it forgets."""

    election: Election


@dataclass(frozen=True, slots=True)
class AppendBatch:
    """Append a batch at the log's end, and sync it; `Synced` follows."""

    data: bytes
    base_offset: Offset
    end_offset: Offset


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """Who leads in an epoch, None while nobody does."""

    leader_id: int | None
    epoch: LeaderEpoch


@dataclass(frozen=True, slots=True)
class QuorumCommitted:
    """What is below the high watermark stays."""

    high_watermark: Offset


@dataclass(frozen=True, slots=True)
class MoveLogStart:
    """A snapshot stands for everything below the offset: the log may begin there."""

    to: Offset


@dataclass(frozen=True, slots=True)
class ProposalRefused:
    """This node does not lead, so it appends nothing."""


QuorumEffect: TypeAlias = (
    SaveElection | AppendBatch | LeaderChanged | QuorumCommitted | MoveLogStart | ProposalRefused
)
