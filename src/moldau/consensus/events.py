"""What happens to a quorum's member, and how it sees its log."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol, TypeAlias

from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.kernel.snapshot_id import SnapshotId
from moldau.protocol.schema import Message

RequestToken: TypeAlias = Hashable
"""By which the shell knows the request that an answer is for."""


class EndOfEpoch(NamedTuple):
    """Where the records of an epoch end."""

    epoch: LeaderEpoch
    end_offset: Offset


class QuorumLog(Protocol):
    """The metadata log as the quorum sees it; effects change it before the next event."""

    @property
    def start_offset(self) -> Offset:
        """The offset of the first record."""

    @property
    def end_offset(self) -> Offset:
        """Where the next record goes."""

    @property
    def synced_end(self) -> Offset:
        """The end of what a crash keeps."""

    @property
    def last_epoch(self) -> LeaderEpoch:
        """The epoch of the last record, or of the latest snapshot if there is none; else 0."""

    def end_of_epoch(self, epoch: LeaderEpoch) -> EndOfEpoch:
        """Return the end of the last epoch up to this one that has records, or a snapshot.

        There may be none: the end is then the log's start.
        """

    def epoch_at(self, end_offset: Offset) -> LeaderEpoch:
        """Return the epoch of the record in front of this offset; 0 at the very start."""

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        """The one that ends last."""

    @property
    def earliest_snapshot(self) -> SnapshotId | None:
        """The one that ends first."""

    def find_snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        """Return how many bytes a snapshot has, None if there is no such snapshot."""


@dataclass(frozen=True, slots=True)
class Start:
    """The log, the voters and the last election are loaded."""


@dataclass(frozen=True, slots=True)
class Tick:
    """The time that the last `WakeAt` named has come."""


@dataclass(frozen=True, slots=True)
class Propose:
    """Records to append together, as the values of their record batch."""

    values: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class UpgradeKraftVersion:
    """From now on the voters stand in the log (KIP-853)."""


@dataclass(frozen=True, slots=True)
class PeerRequest:
    """A request of another node, or of a tool, for the quorum."""

    token: RequestToken
    message: Message
    version: int
    listener: str = ""
    """The listener it came in by; answers name the leader's address of the same name."""


@dataclass(frozen=True, slots=True)
class PeerResponse:
    """An answer to a `SendToPeer`."""

    request_id: int
    message: Message


class SendFailure(Enum):
    """Why a `SendToPeer` will not be answered."""

    LOST = "the connection ended, or the peer was silent for the request's timeout"
    REFUSED = "nothing listens at the peer's address"
    UNSUPPORTED_VERSION = "the peer knows no version that can carry the request"


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """A `SendToPeer` will not be answered."""

    request_id: int
    failure: SendFailure


@dataclass(frozen=True, slots=True)
class Synced:
    """Everything below the offset is on our disk."""

    end_offset: Offset


@dataclass(frozen=True, slots=True)
class SnapshotWritten:
    """A snapshot of everything below the offset is on our disk."""

    end_offset: Offset


@dataclass(frozen=True, slots=True)
class Resign:
    """The controller of this epoch failed; another node is to lead."""

    epoch: LeaderEpoch


@dataclass(frozen=True, slots=True)
class StorageFailed:
    """The log could not be written or synced; it is never tried again."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The node shuts down; `Stopped` follows, when another leads or the time is over."""

    timeout_ms: int = 0


QuorumEvent: TypeAlias = (
    Start
    | Tick
    | Propose
    | UpgradeKraftVersion
    | PeerRequest
    | PeerResponse
    | RequestFailed
    | Synced
    | SnapshotWritten
    | Resign
    | StorageFailed
    | Stop
)
