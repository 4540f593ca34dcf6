"""A simulated node's metadata log: batches in memory; a crash keeps what is synced."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from moldau._native.records import Record, read_batches
from moldau.consensus.events import EndOfEpoch
from moldau.consensus.following import snapshot_control
from moldau.consensus.voters import IN_SNAPSHOT, VoterHistory, Voters, VotersAt, voters_record
from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.kernel.snapshot_id import FIRST_SNAPSHOT, SnapshotId
from moldau.protocol.schema import Buffer
from moldau.protocol.stored.control_records import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
)
from moldau.records.batch import build_batch, read_records
from moldau.records.control import QuorumValue, build_quorum_batch, read_control_record

if TYPE_CHECKING:
    from moldau.consensus.quorum_state import Election


class SimulatedBatch(NamedTuple):
    """A batch of the log."""

    base: Offset
    end: Offset
    epoch: LeaderEpoch
    data: bytes


class MemoryQuorumLog:
    """A log with snapshots and an election file; `QuorumLog` for the member."""

    def __init__(self) -> None:
        self.batches: list[SimulatedBatch] = []
        self.start_offset = Offset(0)
        self.synced_end = Offset(0)
        self.snapshots: dict[SnapshotId, bytes] = {}
        self.part: tuple[SnapshotId, bytearray] | None = None
        self.election: Election | None = None
        self._epochs: list[tuple[LeaderEpoch, Offset]] = []
        """Where each epoch begins, those before the log's start but the last left out."""
        self._cut: tuple[list[SimulatedBatch], list[tuple[LeaderEpoch, Offset]]] | None = None
        """What a truncation took that no sync has made final."""
        self._syncing = Offset(0)

    # As the member sees it.

    @property
    def end_offset(self) -> Offset:
        """Where the next record goes."""
        return self.batches[-1].end if self.batches else self.start_offset

    @property
    def last_epoch(self) -> LeaderEpoch:
        """The epoch of the last record, or of the latest snapshot if there is none."""
        return self._epochs[-1][0] if self._epochs else LeaderEpoch(0)

    def end_of_epoch(self, epoch: LeaderEpoch) -> EndOfEpoch:
        """Return the end of the last epoch up to this one."""
        at = bisect_right(self._epochs, epoch, key=lambda each: each[0])
        if at == 0:
            return EndOfEpoch(LeaderEpoch(min(epoch, self.last_epoch)), self.start_offset)
        end = self._epochs[at][1] if at < len(self._epochs) else self.end_offset
        return EndOfEpoch(self._epochs[at - 1][0], end)

    def epoch_at(self, end_offset: Offset) -> LeaderEpoch:
        """Return the epoch of the record in front of this offset."""
        found = self._epochs[0][0] if self._epochs else LeaderEpoch(0)
        for epoch, start in self._epochs:
            if start >= end_offset:
                break
            found = epoch
        return found if end_offset else LeaderEpoch(0)

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        """The one that ends last."""
        return max(self.snapshots, default=None)

    @property
    def earliest_snapshot(self) -> SnapshotId | None:
        """The one that ends first."""
        return min(self.snapshots, default=None)

    def find_snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        """Return how many bytes a snapshot has."""
        data = self.snapshots.get(snapshot_id)
        return None if data is None else len(data)

    # What effects do.

    def append(self, data: Buffer) -> list[SimulatedBatch]:
        """Append whole batches."""
        added = []
        for batch in read_batches(data, check_crc=False):
            stored = SimulatedBatch(
                Offset(batch.base_offset),
                Offset(batch.last_offset + 1),
                LeaderEpoch(batch.leader_epoch),
                bytes(data[batch.position : batch.position + batch.size]),
            )
            assert stored.base == self.end_offset, "batches follow each other"
            assert stored.epoch >= self.last_epoch, "epochs never decrease"
            if stored.epoch > self.last_epoch or not self._epochs:
                self._epochs.append((stored.epoch, stored.base))
            self.batches.append(stored)
            added.append(stored)
        return added

    def truncate(self, to: Offset) -> list[SimulatedBatch]:
        """Take batches away; a crash before the next sync may bring them back."""
        at = self._find(to)
        taken = self.batches[at:]
        if self._cut is None:
            self._cut = (self.batches[:], self._epochs[:])
        del self.batches[at:]
        self._cut_epochs(to)
        self.synced_end = min(self.synced_end, to)
        self._syncing = min(self._syncing, to)
        return taken

    def _cut_epochs(self, to: Offset) -> None:
        earliest = self.earliest_snapshot
        kept = [each for each in self._epochs if each[1] < to]
        if not kept and earliest is not None and self.start_offset:
            kept = [(earliest.epoch, self.start_offset)]
        self._epochs = kept

    def _find(self, offset: Offset) -> int:
        """Return the index of the batch that begins at an offset."""
        at = bisect_right(self.batches, offset, key=lambda each: each.base) - 1
        if at < 0 or self.batches[at].base != offset:
            assert offset == self.end_offset, "logs are cut between batches"
            return len(self.batches)
        return at

    def read(self, start: Offset, bytes_max: int) -> bytes:
        """Return batches from an offset on."""
        pieces: list[bytes] = []
        size = 0
        for batch in self.batches[self._find(start) :]:
            if pieces and size + len(batch.data) > bytes_max:
                break
            pieces.append(batch.data)
            size += len(batch.data)
        return b"".join(pieces)

    def between(self, start: Offset, end: Offset) -> Sequence[SimulatedBatch]:
        """Return the batches of a range."""
        return self.batches[self._find(start) : self._find(end)]

    def publish(self, snapshot_id: SnapshotId) -> None:
        """Begin anew at the end of the snapshot that was written."""
        assert self.part is not None, "its pieces came before"
        assert self.part[0] == snapshot_id, "of this very snapshot"
        self.snapshots = {snapshot_id: bytes(self.part[1])}
        self.part = None
        self.batches = []
        self._cut = None
        self.start_offset = self.synced_end = self._syncing = snapshot_id.end_offset
        self._epochs = [(snapshot_id.epoch, snapshot_id.end_offset)]

    def write_piece(self, snapshot_id: SnapshotId, position: int, data: Buffer) -> None:
        """Write a piece of the leader's snapshot."""
        if position == 0:
            self.part = (snapshot_id, bytearray())
        assert self.part is not None, "the first piece comes first"
        assert (snapshot_id, position) == (self.part[0], len(self.part[1])), "pieces follow"
        self.part[1].extend(data)

    def keep_snapshot(self, snapshot_id: SnapshotId, data: bytes) -> None:
        """Store a snapshot of one's own; a real one stands for the first."""
        self.snapshots[snapshot_id] = data
        self.snapshots.pop(FIRST_SNAPSHOT, None)

    def move_start(self, snapshot_id: SnapshotId) -> None:
        """Let go of everything before a snapshot's end."""
        to = snapshot_id.end_offset
        del self.batches[: self._find(to)]
        self._cut = None
        self.start_offset = to
        self.snapshots = {key: data for key, data in self.snapshots.items() if key >= snapshot_id}
        kept = [each for each in self._epochs if each[1] >= to]
        self._epochs = [(snapshot_id.epoch, to), *kept]
        if kept and kept[0][0] == snapshot_id.epoch:
            del self._epochs[1]

    # Syncs and crashes.

    def begin_sync(self) -> None:
        """What is written by now will be durable."""
        self._syncing = self.end_offset

    def end_sync(self) -> Offset:
        """It is."""
        self._cut = None
        self.synced_end = max(self.synced_end, self._syncing)
        return self.synced_end

    def crash(self, choose: Callable[[int], int]) -> None:
        """Lose a tail of what is not synced; `choose` picks a number below its argument."""
        self.part = None
        if self._cut is not None and choose(2):
            self.batches, self._epochs = self._cut
        self._cut = None
        unsynced = sum(batch.base >= self.synced_end for batch in self.batches)
        kept = len(self.batches) - unsynced + choose(unsynced + 1)
        del self.batches[kept:]
        self._cut_epochs(self.end_offset)
        self._syncing = self.synced_end

    # The voters, as they are loaded.

    def load_history(self, static_voters: Voters) -> VoterHistory:
        """Replay the control records of the latest snapshot and of the log behind it."""
        history = VoterHistory(static_voters)
        latest = self.latest_snapshot
        if latest is not None:
            values = snapshot_control(self.snapshots[latest])
            history.restart(values, latest.end_offset)
        for batch in self.batches:
            if latest is None or batch.base >= latest.end_offset:
                for offset, value in control_values(batch.data):
                    history.replay(value, offset)
        return history


def control_values(data: bytes) -> list[tuple[int, QuorumValue]]:
    """Return what the control records of a batch say, nothing if it is none of control."""
    [batch] = read_batches(data, check_crc=False)
    if not batch.is_control:
        return []
    found = []
    for record in read_records(data, batch):
        value = read_control_record(record).value
        if isinstance(value, QuorumValue):
            found.append((record.offset, value))
    return found


def snapshot_bytes(snapshot_id: SnapshotId, voters: VotersAt, digest: int) -> bytes:
    """Return a snapshot of an image that is but a digest."""
    control: list[QuorumValue] = [SnapshotHeaderRecord()]
    if voters.kraft_version:
        control.append(KRaftVersionRecord(kraft_version=voters.kraft_version))
        control.append(voters_record(voters.voters))
    epoch = snapshot_id.epoch
    head = build_quorum_batch(control, timestamp=0, base_offset=0, leader_epoch=epoch)
    offset = len(control)
    body = build_batch([Record(offset, 0, None, b"%d" % digest)], leader_epoch=epoch)
    foot = build_quorum_batch(
        [SnapshotFooterRecord()], timestamp=0, base_offset=offset + 1, leader_epoch=epoch
    )
    return head + body + foot


def digest_of(data: bytes) -> int:
    """Return the image of a snapshot."""
    [body] = [batch for batch in read_batches(data) if not batch.is_control]
    [record] = read_records(data, body)
    return int(record.value or b"")


def formatted(voters: Voters) -> MemoryQuorumLog:
    """Return the log of a directory that was formatted with its first voters."""
    log = MemoryQuorumLog()
    log.snapshots[FIRST_SNAPSHOT] = snapshot_bytes(
        FIRST_SNAPSHOT, VotersAt(IN_SNAPSHOT, voters, 1), 0
    )
    return log
