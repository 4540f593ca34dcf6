"""A member of the quorum: the protocol machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from moldau._native.records import Record
from moldau.consensus.errors import UnsupportedQuorumError
from moldau.consensus.events import (
    AppendBatch,
    LeaderChanged,
    MoveLogStart,
    ProposalRefused,
    Propose,
    QuorumCommitted,
    QuorumEffect,
    QuorumEvent,
    QuorumLog,
    SaveElection,
    SnapshotWritten,
    Start,
    Synced,
    UpgradeKraftVersion,
)
from moldau.consensus.quorum_state import Election
from moldau.consensus.voters import (
    IN_SNAPSHOT,
    KRAFT_VERSION_MAX,
    Voter,
    VoterHistory,
    voters_record,
)
from moldau.kernel.clock import Instant
from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.protocol.stored.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
)
from moldau.records.batch import build_batch
from moldau.records.control import QuorumValue, build_quorum_batch


@dataclass(frozen=True, slots=True)
class Unattached:
    """Knows of no leader in its epoch: as it was loaded."""

    epoch: LeaderEpoch


@dataclass(frozen=True, slots=True)
class Leader:
    """Appends; commits what a majority has on disk, once that reaches into its own epoch."""

    epoch: LeaderEpoch
    epoch_start: Offset


@dataclass(frozen=True, slots=True)
class Resigned:
    """Led its epoch, and never will again in this one."""

    epoch: LeaderEpoch


Role: TypeAlias = Unattached | Leader | Resigned


class QuorumMember:
    """One voter that is the whole quorum; its own vote and its own disk are the majority.

    | from | event | to | effects, in order |
    |---|---|---|---|
    | Unattached | Start | Leader | SaveElection, LeaderChanged, AppendBatch (of control) |
    | Leader | Propose | Leader | AppendBatch |
    | Leader | UpgradeKraftVersion | Leader | AppendBatch (of control), SaveElection |
    | Leader | Synced | Leader | Committed, if the high watermark moves |
    | Leader | SnapshotWritten | Leader | MoveLogStart |
    | Leader | Stop, StorageFailed | Resigned | LeaderChanged (nobody) |
    | Unattached, Resigned | Propose, UpgradeKraftVersion | same | ProposalRefused |
    | Unattached, Resigned | Synced, SnapshotWritten, Stop, StorageFailed | same | none |

    A node that led before starts in a new epoch, because what it had appended and not synced may
    be gone: an offset in an epoch names one record for ever. Nothing here truncates the log.
    """

    def __init__(
        self, local: Voter, history: VoterHistory, log: QuorumLog, election: Election | None
    ) -> None:
        """Take what was loaded; `UnsupportedQuorumError` unless `local` is the only voter."""
        voters = [(voter.node_id, voter.directory_id) for voter in history.voters]
        if history.kraft_version > KRAFT_VERSION_MAX:
            raise UnsupportedQuorumError(
                f"the quorum's kraft.version is {history.kraft_version},"
                f" and this release supports 0 to {KRAFT_VERSION_MAX}"
            )
        if history.offset is None:  # the settings do not know directories
            voters = [(node_id, local.directory_id) for node_id, _ in voters]
        if voters != [(local.node_id, local.directory_id)]:
            names = ", ".join(str(node_id) for node_id, _ in voters) or "nobody"
            raise UnsupportedQuorumError(
                f"the quorum's voters are {names}; node {local.node_id} with its directory"
                " is not the only one, and cannot lead alone"
            )
        self._local = local
        self._log = log
        self._voters_written = history.offset
        self._voter = history.voters[0]
        self.kraft_version = history.kraft_version
        last_epoch = log.last_epoch if election is None else max(election.epoch, log.last_epoch)
        self.role: Role = Unattached(LeaderEpoch(last_epoch))
        self.high_watermark: Offset | None = None
        """Unknown until the leader has committed something of its epoch."""

    @property
    def voter(self) -> Voter:
        """The quorum's only voter, as the log names it."""
        return self._voter

    def handle(self, event: QuorumEvent, now: Instant) -> list[QuorumEffect]:
        """Take in an event; the effects are to be performed in order, before the next event."""
        match self.role, event:
            case Unattached(epoch), Start():
                return self._become_leader(LeaderEpoch(epoch + 1), now)
            case _, Start():
                raise AssertionError("a member starts once")
            case Leader() as leader, _:
                return self._lead(leader, event, now)
            case _, Propose() | UpgradeKraftVersion():
                return [ProposalRefused()]
            case _:
                return []

    def _lead(self, leader: Leader, event: QuorumEvent, now: Instant) -> list[QuorumEffect]:
        match event:
            case Propose(values):
                return [self._append(leader.epoch, values, now)]
            case UpgradeKraftVersion():
                return self._upgrade(leader.epoch, now)
            case Synced(end_offset):
                return self._commit(leader, end_offset)
            case SnapshotWritten(end_offset):
                is_committed = self.high_watermark is not None and end_offset <= self.high_watermark
                assert is_committed, "a snapshot holds what is committed"
                return [MoveLogStart(end_offset)]
            case _:  # Stop, StorageFailed
                self.role = Resigned(leader.epoch)
                return [LeaderChanged(None, leader.epoch)]

    def _become_leader(self, epoch: LeaderEpoch, now: Instant) -> list[QuorumEffect]:
        self.role = Leader(epoch, self._log.end_offset)
        node_id = self._local.node_id
        itself = [LeaderChangeMessageVoter(voter_id=node_id)]
        values: list[QuorumValue] = [
            LeaderChangeMessage(leader_id=node_id, voters=itself, granting_voters=itself)
        ]
        # A snapshot alone knows the first voters, and an address may have changed since.
        if self.kraft_version and (
            self._voters_written == IN_SNAPSHOT or self._voter != self._local
        ):
            values += self._voter_records()
        return [
            SaveElection(Election(epoch, leader_id=node_id)),
            LeaderChanged(node_id, epoch),
            self._append_control(epoch, values, now),
        ]

    def _upgrade(self, epoch: LeaderEpoch, now: Instant) -> list[QuorumEffect]:
        if self.kraft_version == KRAFT_VERSION_MAX:
            return []
        self.kraft_version = KRAFT_VERSION_MAX
        batch = self._append_control(epoch, self._voter_records(), now)
        # Written again, because its format goes by the version.
        return [batch, SaveElection(Election(epoch, leader_id=self._local.node_id))]

    def _voter_records(self) -> list[QuorumValue]:
        self._voter = self._local
        self._voters_written = self._log.end_offset
        return [
            KRaftVersionRecord(kraft_version=self.kraft_version),
            voters_record((self._local,)),
        ]

    def _commit(self, leader: Leader, end_offset: Offset) -> list[QuorumEffect]:
        assert end_offset <= self._log.end_offset, "what is synced was appended"
        # Raft, 5.4.2: an older epoch's records are committed only together with one of our own.
        if end_offset <= leader.epoch_start:
            return []
        if self.high_watermark is not None and end_offset <= self.high_watermark:
            return []
        self.high_watermark = end_offset
        return [QuorumCommitted(end_offset)]

    def _append(self, epoch: LeaderEpoch, values: Sequence[bytes], now: Instant) -> AppendBatch:
        base_offset = self._log.end_offset
        data = build_batch(
            (
                Record(offset, now.wall_ms, None, value)
                for offset, value in enumerate(values, base_offset)
            ),
            leader_epoch=epoch,
        )
        return AppendBatch(data, base_offset, Offset(base_offset + len(values)))

    def _append_control(
        self, epoch: LeaderEpoch, values: Sequence[QuorumValue], now: Instant
    ) -> AppendBatch:
        base_offset = self._log.end_offset
        data = build_quorum_batch(
            values, timestamp=now.wall_ms, base_offset=base_offset, leader_epoch=epoch
        )
        return AppendBatch(data, base_offset, Offset(base_offset + len(values)))
