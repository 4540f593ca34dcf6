"""All partitions of one log directory."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final

from moldau.kernel.clock import Instant
from moldau.kernel.disk import Disk, DiskError, DiskFullError, DiskMissingError
from moldau.kernel.ids import Offset, TopicId, TopicPartition
from moldau.log.checkpoints import (
    CLEAN_SHUTDOWN,
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    render_clean_shutdown,
)
from moldau.log.config import FOREVER, MEMORY, Durability, LogConfig
from moldau.log.errors import PartitionOfflineError, StorageFullError
from moldau.log.file_names import relocated
from moldau.log.folders import FolderState, marked_name
from moldau.log.identity import PARTITION_METADATA, render_partition_metadata
from moldau.log.index_pages import PageCache
from moldau.log.offset_checkpoints import CHECKPOINTS, Checkpoint, OffsetCheckpoints
from moldau.log.opened_partition import Opened
from moldau.log.partition import PartitionLog
from moldau.log.state import SegmentMaker, empty_log
from moldau.log.survey import Survey
from moldau.log.sync_round import PartitionSync, SyncRound

POINTS_SECONDS: Final = 1.0
OTHERS_SECONDS: Final = 5.0


class LogDirectory:
    """The partitions of one log directory, what of them is not durable yet, and its checkpoints.

    Runs on the event loop. What waits for the device is handed out (`take_round`,
    `take_checkpoints`, `lower`), done elsewhere, and reported back. After `fail` nothing is.
    """

    def __init__(
        self,
        disk: Disk,
        found: Survey,
        *,
        durability: Durability,
        cache: PageCache,
        entropy: Callable[[int], bytes],
    ) -> None:
        self.disk = disk
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.topic_ids: dict[TopicPartition, TopicId] = {}
        self.closed: dict[TopicPartition, str] = {}
        """Partitions that cannot be used, and why."""
        self.futures: set[TopicPartition] = set()
        """Those of `logs` that are copies, to come in the place of a log in another directory."""
        self.failure: DiskError | None = None
        self._durability = durability
        self._cache = cache
        self._entropy = entropy
        self._checkpoints = OffsetCheckpoints(found.checkpoints)
        self._folderless: set[TopicPartition] = set()  # new, and nothing was written yet
        self._due: dict[TopicPartition, PartitionLog] = {}  # to be synced now
        self._waiting: dict[TopicPartition, PartitionLog] = {}  # dirty, and not due yet
        self._new_files: dict[str, None] = {}
        self._new_names: dict[str, None] = {}
        self._naming: SyncRound | None = None  # under way, with names of new partitions
        self._has_rolled = False
        self._points_at = self._others_at = float("-inf")

    # Partitions.

    def get(self, partition: TopicPartition) -> PartitionLog:
        """Return a log that is here and can be used."""
        if self.failure is not None:
            raise PartitionOfflineError(f"log directory offline: {self.failure}")
        if reason := self.closed.get(partition):
            raise PartitionOfflineError(f"{partition} is offline: {reason}")
        return self.logs[partition]

    def adopt(self, opened: Opened) -> PartitionLog:
        """Take in a partition that was opened."""
        partition, is_future, topic_id, state, maker = opened
        for segment in state.segments:
            segment.move_to(self.disk, self._cache)
        maker.disk, maker.cache, maker.jitter = self.disk, self._cache, self._jitter()
        if topic_id is not None:
            self.topic_ids[partition] = topic_id
        if is_future:
            self.futures.add(partition)
        log = self._add(partition, PartitionLog(state, maker, self._durability))
        high = self._checkpoints.find(HIGH_WATERMARKS, partition)
        if high is not None:
            log.advance_high_watermark(high)
        return log

    def create(
        self,
        partition: TopicPartition,
        topic_id: TopicId,
        config: LogConfig,
        now: Instant,
    ) -> PartitionLog:
        """Make a partition; `lower` it to 0 first, because its name may have been used before.

        Nothing of it is on the disk until `make_folder`, so that partitions which are never used
        cost nothing there.
        """
        return self._make(partition, topic_id, config, str(partition), now)

    def create_future(
        self,
        partition: TopicPartition,
        topic_id: TopicId,
        config: LogConfig,
        start: Offset,
        now: Instant,
    ) -> PartitionLog:
        """Make an empty copy of a log in another directory; `lower` the partition to 0 first.

        Its folder is there at once: it is what tells a later start to go on copying.
        """
        folder = marked_name(partition, self._entropy(16), FolderState.FUTURE)
        log = self._make(partition, topic_id, config, folder, now)
        try:
            self.make_folder(partition)
            if start:
                log.truncate_fully_and_start_at(start, now)  # the file's name says where it starts
        except (DiskFullError, StorageFullError):
            self._forget(partition)
            with suppress(DiskError):
                self.disk.remove_directory(folder)
            raise
        self.futures.add(partition)
        self.note_change(partition, now)
        return log

    def _make(
        self,
        partition: TopicPartition,
        topic_id: TopicId,
        config: LogConfig,
        folder: str,
        now: Instant,
    ) -> PartitionLog:
        assert partition not in self.logs, f"{partition} is there"
        if self.failure is not None:
            raise PartitionOfflineError(f"log directory offline: {self.failure}")
        if partition in self.closed:
            raise PartitionOfflineError(f"{partition} is offline: {self.closed[partition]}")
        maker = SegmentMaker(self.disk, folder, self._cache, config, self._jitter())
        state = empty_log(maker, Offset(0), now.wall_ms)
        log = self.logs[partition] = PartitionLog(state, maker, self._durability)
        self.topic_ids[partition] = topic_id
        self._folderless.add(partition)
        return log

    def promote(self, partition: TopicPartition) -> None:
        """Give a copy, which has taken its place, the folder of a log.

        Nothing of it may be staged, nor any sync round be under way: it would sync old names.
        """
        log = self.get(partition)
        old, new = log.directory, str(partition)
        self.disk.rename(old, new)
        log.relocate(new)
        for path in [path for path in self._new_files if path.startswith(f"{old}/")]:
            del self._new_files[path]
            self._new_files[relocated(path, new)] = None
        if self._new_names.pop(old, self) is None:
            self._new_names[new] = None
        self._new_names[""] = None

    def make_folder(self, partition: TopicPartition) -> None:
        """Make a new partition's folder, if it has none yet: something is going to be written.

        Its names become durable with the next sync round: nothing is acknowledged before.
        """
        if partition not in self._folderless:
            return
        folder = self.logs[partition].directory
        try:
            self.disk.make_directory(folder)
            self._write_topic_id(partition, self.topic_ids[partition])
        except DiskFullError as error:
            with suppress(DiskError):
                self.disk.remove_directory(folder)
            raise StorageFullError(str(error)) from error
        self._folderless.discard(partition)
        self._new_names[""] = None
        self._checkpoints.set(RECOVERY_POINTS, partition, self.logs[partition].recovery_point)

    def set_topic_id(self, partition: TopicPartition, topic_id: TopicId) -> None:
        """Write the topic's id that had got lost."""
        with suppress(DiskMissingError):
            self.disk.truncate(f"{self._folder_of(partition)}/{PARTITION_METADATA}", 0)
        self._write_topic_id(partition, topic_id)

    def delete(self, partition: TopicPartition) -> str | None:
        """Take a partition out; return the folder whose files are then to be removed, if any."""
        if partition in self._folderless:
            self._forget(partition)
            self._checkpoints.drop(partition)
            return None
        return self._move_away(partition, FolderState.DELETED)

    def set_aside(self, partition: TopicPartition) -> str:
        """Take a partition out and keep its files; return their folder."""
        return self._move_away(partition, FolderState.STRAY)

    def close_partition(self, partition: TopicPartition, reason: str) -> None:
        """This partition cannot be used; its files stay where they are."""
        self.closed[partition] = reason
        self._forget(partition)

    def fail(self, error: DiskError) -> None:
        """The device is broken: nothing in this directory can be relied on any more."""
        self.failure = error

    def _add(self, partition: TopicPartition, log: PartitionLog) -> PartitionLog:
        self.logs[partition] = log
        self._checkpoints.set(RECOVERY_POINTS, partition, log.recovery_point)
        return log

    def _write_topic_id(self, partition: TopicPartition, topic_id: TopicId) -> None:
        folder = self._folder_of(partition)
        path = f"{folder}/{PARTITION_METADATA}"
        self.disk.append(path, [render_partition_metadata(topic_id)])
        self.topic_ids[partition] = topic_id
        self._new_files[path] = None
        self._new_names[folder] = None

    def _folder_of(self, partition: TopicPartition) -> str:
        log = self.logs.get(partition)
        return str(partition) if log is None else log.directory

    def _move_away(self, partition: TopicPartition, state: FolderState) -> str:
        if self.failure is not None:
            raise PartitionOfflineError(f"log directory offline: {self.failure}")
        old = self._folder_of(partition)
        folder = marked_name(partition, self._entropy(16), state)
        self.disk.rename(old, folder)
        self._forget(partition)
        self.closed.pop(partition, None)
        self._checkpoints.drop(partition)
        self._new_files.pop(f"{old}/{PARTITION_METADATA}", None)
        self._new_names.pop(old, None)
        self._new_names[""] = None
        return folder

    def _forget(self, partition: TopicPartition) -> None:
        self.topic_ids.pop(partition, None)
        self._folderless.discard(partition)
        self.futures.discard(partition)
        for logs in (self.logs, self._due, self._waiting):
            logs.pop(partition, None)

    def _jitter(self) -> float:
        return int.from_bytes(self._entropy(4)) / (1 << 32)

    # Durability.

    def note_change(self, partition: TopicPartition, now: Instant) -> None:
        """A log was written or changed otherwise; its turn comes with a sync round."""
        log = self.logs.get(partition)
        if log is None or partition in self._folderless:
            return
        is_due = self._durability is not MEMORY and log.is_sync_due(now)
        if self._durability is not MEMORY:
            logs = self._due if is_due else self._waiting
            logs[partition] = log
        # Until it is synced there is no more to know, unless the number of records makes it due.
        config = log.config
        log.end.is_noted = is_due or config.flush_messages == config.flush_ms == FOREVER

    def sync_soon(self, partition: TopicPartition) -> None:
        """Have a log synced with the next sync round, whatever `flush.ms` says."""
        if partition not in self._folderless:
            self._due[partition] = self.logs[partition]

    @property
    def is_sync_due(self) -> bool:
        """Whether anything is to be synced now."""
        if self.failure is not None or self._durability is MEMORY:
            return False
        return bool(self._due or self._new_files or self._new_names)

    def take_round(self, now: Instant) -> SyncRound | None:
        """Return what is to be synced now, if anything; `synced` or `put_back` follows.

        Several rounds may be under way, but not two with the same log: the system tells only one
        of two callers that a file's sync has failed. While a round brings the names of new
        partitions to the device none begins, because it could be done before, and acknowledge
        what has no name yet.
        """
        if self._naming is not None or not self.is_sync_due:
            return None
        due = {partition: log for partition, log in self._due.items() if not log.is_syncing}
        if not (due or self._new_files or self._new_names):
            return None
        for partition in due:
            del self._due[partition]
            if partition in self._waiting:
                del self._waiting[partition]
        return self._make_round(due, now)

    def tick(self, now: Instant) -> None:
        """Let the time bring up what `flush.ms` wants synced."""
        due = [p for p, log in self._waiting.items() if log.is_sync_due(now)]
        self._due.update((partition, self._waiting.pop(partition)) for partition in due)

    def synced(self, sync_round: SyncRound) -> None:
        """Everything in the round is on the device."""
        if self._naming is sync_round:
            self._naming = None
        for partition, log, dirty in sync_round.partitions:
            log.synced(dirty)
            self._has_rolled = self._has_rolled or bool(dirty.segments)
            if self.logs.get(partition) is log:
                self._checkpoints.set(RECOVERY_POINTS, partition, log.recovery_point)

    def put_back(self, sync_round: SyncRound) -> None:
        """There was no room for a replacement: all of it is still to be synced."""
        if self._naming is sync_round:
            self._naming = None
        for partition, log, dirty in sync_round.partitions:
            log.put_back(dirty)
            if self.logs.get(partition) is log:
                self._due[partition] = log
        self._new_files = dict.fromkeys(sync_round.files) | self._new_files
        self._new_names = dict.fromkeys(sync_round.directories) | self._new_names

    def _make_round(
        self, logs: dict[TopicPartition, PartitionLog], now: Instant
    ) -> SyncRound | None:
        shares = [PartitionSync(p, log, log.take_dirty(now)) for p, log in logs.items()]
        files, names = self._new_files, self._new_names
        is_naming = bool(files or names)
        self._new_files, self._new_names = {}, {}
        replacements: list[tuple[str, bytes]] = []
        for share in shares:
            for path in share.dirty.files:
                files[path] = None
            replacements += share.dirty.checkpoints
            if share.dirty.directory is not None:
                names[share.dirty.directory] = None
        sync_round = SyncRound(tuple(files), replacements, tuple(names), shares)
        if sync_round.is_empty:
            self.synced(sync_round)
            return None
        if is_naming:
            self._naming = sync_round
        return sync_round

    # Checkpoints.

    def take_checkpoints(self, now: Instant, *, everything: bool = False) -> list[Checkpoint]:
        """Return what is to be written now; `synced_checkpoints` or `put_back_checkpoints` follows.

        Recovery points at every roll, and at most every second: they bound what is checked after
        a crash, and tell a torn write from damage. The others every five seconds.
        """
        if self.failure is not None or self._durability is MEMORY:
            return []
        paths = []
        if everything or self._are_points_due(now):
            self._has_rolled = False
            self._points_at = now.monotonic
            paths.append(RECOVERY_POINTS)
        if everything or now.monotonic - self._others_at >= OTHERS_SECONDS:
            self._others_at = now.monotonic
            self._note_offsets()
            paths += [path for path in CHECKPOINTS if path != RECOVERY_POINTS]
        return self._checkpoints.take(paths)

    def is_checkpoint_due(self, now: Instant) -> bool:
        """Return whether there may be a checkpoint to be written."""
        return self._are_points_due(now) or now.monotonic - self._others_at >= OTHERS_SECONDS

    def _are_points_due(self, now: Instant) -> bool:
        return self._has_rolled or now.monotonic - self._points_at >= POINTS_SECONDS

    def synced_checkpoints(self, checkpoints: Iterable[Checkpoint]) -> None:
        """These are on the device."""
        self._checkpoints.synced(checkpoints)

    def put_back_checkpoints(self, checkpoints: Iterable[Checkpoint]) -> None:
        """There was no room for these; they come again."""
        self._checkpoints.put_back(checkpoints)

    def is_remembered(self, partition: TopicPartition) -> bool:
        """Whether a checkpoint on the device still speaks of a partition of this name."""
        return self._checkpoints.is_synced(partition)

    def lower(self, partition: TopicPartition, to: Offset) -> list[Checkpoint]:
        """Return the checkpoints to be replaced before a partition is cut at `to`, or created."""
        return self._checkpoints.lower(partition, to)

    def find_cut(self, partition: TopicPartition, to: Offset) -> Offset:
        """Return what a log has to be lowered to before it is cut at `to`."""
        return self.get(partition).find_cut(to)

    def truncate(self, partition: TopicPartition, to: Offset, now: Instant) -> None:
        """Cut a log that was lowered before; `DiskColdError`: nothing happened."""
        self._cut(partition, now, lambda log: log.truncate_to(to, now))

    def start_over(self, partition: TopicPartition, at: Offset, now: Instant) -> None:
        """Forget all of a log that was lowered to 0 before; it goes on at `at`."""
        self._cut(partition, now, lambda log: log.truncate_fully_and_start_at(at, now))

    def _cut(
        self, partition: TopicPartition, now: Instant, cut: Callable[[PartitionLog], None]
    ) -> None:
        log = self.get(partition)
        self.make_folder(partition)
        cut(log)
        # A sync round may have come between, and raised it again.
        self._checkpoints.set(RECOVERY_POINTS, partition, log.recovery_point)
        self.note_change(partition, now)

    def cleaned_to(self, partition: TopicPartition) -> Offset | None:
        """Return how far a partition is compacted."""
        return self._checkpoints.find(CLEANED_OFFSETS, partition)

    def removable_to(self, partition: TopicPartition) -> Offset:
        """Return how far retention and compaction go.

        Below the recovery point on the device, a gap is no loss: a crash may undo a part of either.
        """
        if self._durability is MEMORY:
            return self.logs[partition].log_end
        return self._checkpoints.find_synced(RECOVERY_POINTS, partition)

    def set_cleaned_to(self, partition: TopicPartition, offset: Offset) -> None:
        """Note how far a partition is compacted."""
        if partition in self.logs:
            self._checkpoints.set(CLEANED_OFFSETS, partition, offset)

    def note_log_start(self, partition: TopicPartition) -> list[Checkpoint]:
        """Return what is to be written for a moved log start to survive a crash."""
        self._note_log_start(partition, self.logs[partition])
        return self._checkpoints.take([LOG_STARTS])

    def _note_offsets(self) -> None:
        for partition, log in self.logs.items():
            if partition not in self._folderless:
                self._checkpoints.set(HIGH_WATERMARKS, partition, log.high_watermark)
                self._note_log_start(partition, log)

    def _note_log_start(self, partition: TopicPartition, log: PartitionLog) -> None:
        # Without a row the log starts with its first segment.
        start = log.log_start if log.log_start > log.segments[0].base_offset else None
        self._checkpoints.set(LOG_STARTS, partition, start)

    # The end.

    def close(self) -> None:
        """Close all logs; then come a last sync round, all checkpoints, and `mark_clean`."""
        used = {p: log for p, log in self.logs.items() if p not in self._folderless}
        for log in used.values():
            log.close()
        self._due.update(used)

    def mark_clean(self, disk: Disk, broker_epoch: int) -> bool:
        """Note that there is nothing to recover; say whether that is so.

        Not if anything is left to be synced, nor with closed partitions, which would be opened the
        next time without a look at their records.
        """
        if self.failure is not None or self.closed or self._due:
            return False
        disk.replace(CLEAN_SHUTDOWN, render_clean_shutdown(broker_epoch))
        return True


def remove_folder(disk: Disk, folder: str) -> Iterator[None]:
    """Remove a deleted partition's folder, a file at a time."""
    for name in disk.list(folder):
        if not name.endswith("/"):
            with suppress(DiskMissingError):
                disk.remove(f"{folder}/{name}")
        yield
    disk.remove_directory(folder)
