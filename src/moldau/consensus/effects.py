"""The effects that a quorum's member asks its shell for."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from moldau.consensus.events import RequestToken
from moldau.consensus.quorum_state import Election
from moldau.consensus.voters import VotersAt
from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.kernel.snapshot_id import SnapshotId
from moldau.protocol.messages.fetch import FetchResponse
from moldau.protocol.messages.fetch_snapshot import FetchSnapshotResponse
from moldau.protocol.schema import Buffer, Message


class QuorumPeer(NamedTuple):
    """Where a request goes; a bootstrap server has a negative id until it says who it is."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class SaveElection:
    """Make the election durable before the next effect: nothing may go out that it forgets."""

    election: Election


@dataclass(frozen=True, slots=True)
class AppendBatches:
    """Append whole batches at the log's end, and sync it; `Synced` follows."""

    data: Buffer
    base_offset: Offset
    end_offset: Offset


@dataclass(frozen=True, slots=True)
class TruncateLog:
    """Let go of everything from the offset on; it was never committed."""

    to: Offset


@dataclass(frozen=True, slots=True)
class SendToPeer:
    """SendToPeer a request; `PeerResponse` or `RequestFailed` with its id may follow."""

    request_id: int
    peer: QuorumPeer
    message: Message
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer a request."""

    token: RequestToken
    message: Message


@dataclass(frozen=True, slots=True)
class AnswerFetch:
    """Answer with batches from the offset on: one at least, if there is one, then up to a size."""

    token: RequestToken
    response: FetchResponse
    start: Offset
    bytes_max: int


@dataclass(frozen=True, slots=True)
class AnswerFetchSnapshot:
    """Answer with a piece of a snapshot's file."""

    token: RequestToken
    response: FetchSnapshotResponse
    snapshot_id: SnapshotId
    position: int
    bytes_max: int


@dataclass(frozen=True, slots=True)
class WriteSnapshotPiece:
    """Write a piece of the leader's snapshot; position 0 begins a file anew."""

    snapshot_id: SnapshotId
    position: int
    data: Buffer


@dataclass(frozen=True, slots=True)
class PublishSnapshot:
    """Make the snapshot that was written durable, then begin the log anew at its end."""

    snapshot_id: SnapshotId


@dataclass(frozen=True, slots=True)
class LoadSnapshot:
    """The image is the one of this snapshot, which is committed; what was before is history."""

    snapshot_id: SnapshotId


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """Which node leads in an epoch, None while none is known."""

    leader_id: int | None
    epoch: LeaderEpoch


@dataclass(frozen=True, slots=True)
class RoleChanged:
    """The member took another role; for logs and metrics."""

    before: str
    after: str
    epoch: LeaderEpoch
    cause: str


@dataclass(frozen=True, slots=True)
class QuorumCommitted:
    """The high watermark has moved: the records below it stay."""

    high_watermark: Offset


@dataclass(frozen=True, slots=True)
class MoveLogStart:
    """A snapshot stands for everything below the offset: the log may begin there."""

    to: Offset


@dataclass(frozen=True, slots=True)
class VotersChanged:
    """Other voters count from now on; truncation may bring back those before."""

    voters: VotersAt


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Come back with `Tick` at this time of the monotonic clock; it replaces an earlier one."""

    at: float


@dataclass(frozen=True, slots=True)
class ProposalRefused:
    """This node appends nothing: it does not lead, or the reason says what is in the way."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Stopped:
    """The quorum needs this node no more, or has had its time."""


@dataclass(frozen=True, slots=True)
class EndNode:
    """An impossible thing has happened: the node ends before it does harm."""

    reason: str


QuorumEffect: TypeAlias = (
    SaveElection
    | AppendBatches
    | TruncateLog
    | SendToPeer
    | Answer
    | AnswerFetch
    | AnswerFetchSnapshot
    | WriteSnapshotPiece
    | PublishSnapshot
    | LoadSnapshot
    | RoleChanged
    | LeaderChanged
    | QuorumCommitted
    | MoveLogStart
    | VotersChanged
    | WakeAt
    | ProposalRefused
    | Stopped
    | EndNode
)
