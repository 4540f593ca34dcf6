"""The metadata log on its disk: opened, read, appended to, with its snapshots and quorum-state."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from moldau._native.records import read_batches
from moldau.consensus.errors import UnsupportedQuorumError
from moldau.consensus.events import EndOfEpoch
from moldau.consensus.quorum_state import (
    QUORUM_STATE_FILE,
    Election,
    parse_quorum_state,
    render_quorum_state,
)
from moldau.kernel.clock import Instant
from moldau.kernel.disk import Disk, DiskMissingError
from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.kernel.snapshot_id import SUFFIX, SnapshotId, find_snapshot_id
from moldau.log.config import Durability, LogConfig
from moldau.log.errors import CorruptLogError
from moldau.log.extents import Isolation
from moldau.log.index_pages import PageCache
from moldau.log.partition import PartitionLog
from moldau.log.recovery import recover_log
from moldau.log.segment_scan import read_whole
from moldau.log.state import Notice, SegmentMaker
from moldau.runtime.formatting import METADATA_FOLDER

PART = ".part"
DELETED = ".deleted"
READ_BYTES = 1 << 20
HEADER_BYTES = 4096
"""What surely holds a snapshot's first batch."""
CACHE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """A snapshot on the disk."""

    id: SnapshotId
    size: int
    written_ms: int

    @property
    def path(self) -> str:
        """Its file."""
        return f"{METADATA_FOLDER}/{self.id.file_name}"


class MetadataLog:
    """The quorum's log; `waiting` is for threads and for the time before the loop is busy."""

    def __init__(
        self,
        waiting: Disk,
        log: PartitionLog,
        maker: SegmentMaker,
        snapshots: list[StoredSnapshot],
        notices: list[Notice],
    ) -> None:
        self.waiting = waiting
        self.log = log
        self._maker = maker
        self.snapshots = snapshots
        """The oldest first."""
        self.notices = notices
        self.last_timestamp = 0
        """Of the last record, as far as it was appended since the start."""

    # As the quorum sees it.

    @property
    def end_offset(self) -> Offset:
        """Where the next record goes."""
        return self.log.log_end

    @property
    def start_offset(self) -> Offset:
        """The offset of the first record."""
        return self.log.log_start

    @property
    def synced_end(self) -> Offset:
        """The end of what a crash keeps."""
        return self.log.durable_offset

    def end_of_epoch(self, epoch: LeaderEpoch) -> EndOfEpoch:
        """Return the end of the last epoch up to this one."""
        if epoch >= self.last_epoch:
            return EndOfEpoch(self.last_epoch, self.end_offset)
        found = self.log.end_offset_for(epoch)
        earliest = self.earliest_snapshot
        if earliest is not None and found.end_offset == earliest.end_offset:
            # Its records are gone, and the snapshot stands for them.
            return EndOfEpoch(earliest.epoch, earliest.end_offset)
        return EndOfEpoch(found.epoch, found.end_offset)

    def epoch_at(self, end_offset: Offset) -> LeaderEpoch:
        """Return the epoch of the record in front of this offset; 0 at the very start."""
        found = self.log.find_epoch_of(Offset(end_offset - 1)) if end_offset else None
        if found is not None:
            return found
        earliest = self.earliest_snapshot
        return LeaderEpoch(0) if earliest is None else earliest.epoch

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        """The one that ends last."""
        return self.snapshots[-1].id if self.snapshots else None

    @property
    def earliest_snapshot(self) -> SnapshotId | None:
        """The one that ends first."""
        return self.snapshots[0].id if self.snapshots else None

    def find_snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        """Return how many bytes a snapshot has, None if there is no such snapshot."""
        for snapshot in self.snapshots:
            if snapshot.id == snapshot_id:
                return snapshot.size
        return None

    @property
    def last_epoch(self) -> LeaderEpoch:
        """The epoch of the last record, or of the latest snapshot if there is none."""
        if self.log.latest_epoch is not None:
            return self.log.latest_epoch
        return self.snapshots[-1].id.epoch if self.snapshots else LeaderEpoch(0)

    # Reading.

    def pieces(self, start: Offset) -> Iterator[bytes]:
        """Return everything from an offset on in whole batches; blocks."""
        log = self.log
        offset = max(start, log.log_start)
        while offset < log.written_offset:
            found = log.read(offset, bytes_max=READ_BYTES, isolation=Isolation.LOG_END)
            assert found.extent is not None, "there are records up to the end"
            data = self.waiting.read(*found.extent)
            batches = list(read_batches(data))
            last = batches[-1]
            yield data[: last.position + last.size]
            offset = Offset(last.last_offset + 1)

    # Writing.

    def append(self, data: bytes, now: Instant) -> None:
        """Append one batch, which is written but not synced when this returns."""
        batches = list(read_batches(data))
        self.log.append_assigned(data, batches, now=now)
        self.log.write()
        self.last_timestamp = batches[-1].max_timestamp

    def load_election(self) -> Election | None:
        """Return what was saved last; blocks."""
        path = f"{METADATA_FOLDER}/{QUORUM_STATE_FILE}"
        try:
            return parse_quorum_state(read_whole(self.waiting, path))
        except DiskMissingError:
            return None

    def move_to(self, disk: Disk) -> None:
        """From now on the event loop reads and writes, through a disk that does not wait."""
        for segment in self.log.segments:
            segment.move_to(disk, self._maker.cache)
        self._maker.disk = disk

    def save_election(
        self, election: Election, *, kraft_version: int, voter_ids: tuple[int, ...]
    ) -> None:
        """Make an election durable; blocks."""
        data = render_quorum_state(election, kraft_version=kraft_version, voter_ids=voter_ids)
        self.waiting.replace(f"{METADATA_FOLDER}/{QUORUM_STATE_FILE}", data)


def open_metadata_log(
    waiting: Disk, config: LogConfig, durability: Durability, now: Instant
) -> MetadataLog:
    """Open the metadata log; blocks. `UnsupportedQuorumError`: it cannot be used."""
    waiting.make_directory(METADATA_FOLDER)
    snapshots, start = _find_snapshots(waiting)
    maker = SegmentMaker(waiting, METADATA_FOLDER, PageCache(CACHE_BYTES), config)
    steps = recover_log(
        maker, is_clean=False, recovery_point=start, log_start=Offset(0), now_ms=now.wall_ms
    )
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            state = stop.value
            break
        except CorruptLogError as error:
            raise UnsupportedQuorumError(f"the metadata log is damaged: {error}") from error
    log = PartitionLog(state, maker, durability)
    if snapshots and log.log_start > snapshots[-1].id.end_offset:
        raise UnsupportedQuorumError(
            f"the metadata log begins at {log.log_start}, and there is no snapshot of what was"
            " before"
        )
    notices = [notice for notice in state.notices if not _is_ours(notice.path)]
    return MetadataLog(waiting, log, maker, snapshots, notices)


def _find_snapshots(disk: Disk) -> tuple[list[StoredSnapshot], Offset]:
    """Return the snapshots, and the end of the latest; remove what was not finished."""
    found = []
    for name in disk.list(METADATA_FOLDER):
        path = f"{METADATA_FOLDER}/{name}"
        if name.endswith((SUFFIX + PART, SUFFIX + DELETED)):
            with suppress(DiskMissingError):
                disk.remove(path)
        elif (snapshot_id := find_snapshot_id(name)) is not None:
            header = next(iter(read_batches(disk.read(path, 0, HEADER_BYTES))), None)
            written_ms = 0 if header is None else header.max_timestamp
            found.append(StoredSnapshot(snapshot_id, disk.size(path), written_ms))
    found.sort(key=lambda snapshot: snapshot.id)
    return found, found[-1].id.end_offset if found else Offset(0)


def _is_ours(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.startswith(QUORUM_STATE_FILE) or name.endswith(SUFFIX)
