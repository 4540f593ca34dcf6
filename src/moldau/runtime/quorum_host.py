"""The quorum's member on the event loop: its log, its sync rounds, and what is committed."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from moldau.consensus.effects import (
    AppendBatches,
    LeaderChanged,
    MoveLogStart,
    ProposalRefused,
    QuorumCommitted,
    QuorumEffect,
    RoleChanged,
    SaveElection,
    Stopped,
    VotersChanged,
)
from moldau.consensus.events import (
    Propose,
    QuorumEvent,
    SnapshotWritten,
    Start,
    Stop,
    StorageFailed,
    Synced,
    UpgradeKraftVersion,
)
from moldau.consensus.member import QuorumMember
from moldau.kernel.disk import DiskError, DiskFailedError, DiskFullError
from moldau.kernel.ids import Offset, TopicPartition
from moldau.log.sync_round import PartitionSync, SyncRound
from moldau.runtime.environment import NodeEnvironment
from moldau.runtime.metadata_log import MetadataLog
from moldau.runtime.sync_pool import SyncPool

METADATA_PARTITION = TopicPartition("__cluster_metadata", 0)
SYNC_THREADS = 2
RETRY_SECONDS = 1.0


class QuorumListener(Protocol):
    """Who is told what the quorum agrees on; called on the event loop."""

    def committed(self, high_watermark: Offset, /) -> None:
        """Everything below stays."""

    def log_start_may_move(self, to: Offset, /) -> None:
        """A snapshot stands for everything below."""

    def quorum_failed(self, error: DiskError, /) -> None:
        """The metadata log cannot be written any more: nothing is decided until the next start."""


class QuorumHost:
    """Performs what the member wants: appends at once, and syncs in groups.

    The log is always synced, whatever `durability` says of records: what the cluster is must not
    go back. Only in memory there is nothing to sync.
    """

    def __init__(
        self,
        member: QuorumMember,
        log: MetadataLog,
        listener: QuorumListener,
        environment: NodeEnvironment,
        *,
        in_memory: bool,
    ) -> None:
        self.member = member
        self.log = log
        self.leader_id: int | None = None
        self._listener = listener
        self._clock = environment.now
        self._loop = asyncio.get_running_loop()
        self.pool = SyncPool(log.waiting, self, environment, threads=SYNC_THREADS)
        self._in_memory = in_memory

    @property
    def end_offset(self) -> Offset:
        """The offset of the next record."""
        return self.log.end_offset

    def start(self) -> None:
        """Take part in the quorum."""
        self._handle(Start())
        self._wake()

    def propose(self, values: Sequence[bytes]) -> bool:
        """Append records; say whether they are. `StorageFullError`: there is no room for them."""
        is_appended = self._handle(Propose(values))
        self._wake()
        return is_appended

    def upgrade_kraft_version(self) -> bool:
        """Have the voters stand in the log from now on; say whether they do."""
        is_appended = self._handle(UpgradeKraftVersion())
        self._wake()
        return is_appended

    def snapshot_written(self, end_offset: Offset) -> None:
        """A snapshot of everything below is on the disk."""
        self._handle(SnapshotWritten(end_offset))

    def changed(self) -> None:
        """The log was changed otherwise: have it synced."""
        self._wake()

    def close(self) -> None:
        """Resign; what was synced is the log's end."""
        self._handle(Stop())
        self.pool.close()

    # Effects.

    def _handle(self, event: QuorumEvent) -> bool:
        return all(self._perform(effect) for effect in self.member.handle(event, self._clock()))

    def _perform(self, effect: QuorumEffect) -> bool:
        match effect:
            case SaveElection(election):
                # At the start, and once more in a cluster's life: the loop may wait for it.
                member = self.member
                self.log.save_election(
                    election,
                    kraft_version=member.kraft_version,
                    voter_ids=tuple(voter.node_id for voter in member.voters),
                )
            case AppendBatches(data):
                return self._append(bytes(data))
            case LeaderChanged(leader_id):
                self.leader_id = leader_id
            case QuorumCommitted(high_watermark):
                self.log.log.advance_high_watermark(high_watermark)
                self._listener.committed(high_watermark)
            case MoveLogStart(to):
                self._listener.log_start_may_move(to)
            case ProposalRefused():
                return False
            case RoleChanged() | VotersChanged() | Stopped():
                pass
            case _:
                raise AssertionError(f"the only voter has no peers for {type(effect).__name__}")
        return True

    def _append(self, data: bytes) -> bool:
        try:
            self.log.append(data, self._clock())
        except DiskFailedError as error:
            self.failed(error)
            return False
        return True

    # Sync rounds.

    def _wake(self) -> None:
        if self._in_memory:
            # What was appended is as safe as it gets; its caller has not returned yet.
            self._loop.call_soon(self._note_durable)
        else:
            self.pool.wake()

    def _note_durable(self) -> None:
        self._handle(Synced(self.log.log.durable_offset))

    def take_round(self) -> SyncRound | None:
        """Return what is to be synced now."""
        log = self.log.log
        dirty = log.take_dirty(self._clock())
        share = PartitionSync(METADATA_PARTITION, log, dirty)
        names = () if dirty.directory is None else (dirty.directory,)
        sync_round = SyncRound(dirty.files, dirty.checkpoints, names, (share,))
        if sync_round.is_empty:
            log.synced(dirty)
            return None
        return sync_round

    def synced(self, sync_round: SyncRound) -> None:
        """Take note of a round."""
        for share in sync_round.partitions:
            share.log.synced(share.dirty)

    def announce(self, _sync_round: SyncRound) -> None:
        """Announce what a round has made durable."""
        self._note_durable()

    def put_back(self, sync_round: SyncRound, _error: DiskFullError) -> None:
        """Try again; nothing is answered until then."""
        for share in sync_round.partitions:
            share.log.put_back(share.dirty)
        self._loop.call_later(RETRY_SECONDS, self.pool.wake)

    def failed(self, error: DiskError) -> None:
        """The log cannot be written or synced: never try again."""
        self._handle(StorageFailed())
        self._listener.quorum_failed(error)
