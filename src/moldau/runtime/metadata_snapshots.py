"""Snapshots of the metadata: written from time to time, so that the log need not be kept."""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from moldau.consensus.member import QuorumMember
from moldau.consensus.voters import voters_record
from moldau.kernel.disk import DiskError, DiskMissingError
from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.kernel.snapshot_id import SnapshotId
from moldau.metadata.image import ClusterImage
from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.snapshot import write_snapshot
from moldau.protocol.stored.control_records import KRaftVersionRecord, VotersRecord
from moldau.runtime.environment import NodeEnvironment
from moldau.runtime.formatting import METADATA_FOLDER
from moldau.runtime.metadata_log import PART, MetadataLog, StoredSnapshot
from moldau.runtime.quorum_host import QuorumHost

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """When a snapshot is due, and how much of the past is kept."""

    log_bytes_max: int
    interval_ms: int
    retention_bytes: int
    retention_ms: int

    @classmethod
    def of(cls, settings: BrokerSettings) -> "SnapshotSettings":
        """Take them from the node's settings."""
        return cls(
            log_bytes_max=settings.metadata_log_max_record_bytes_between_snapshots,
            interval_ms=settings.metadata_log_max_snapshot_interval_ms,
            retention_bytes=settings.metadata_max_retention_bytes,
            retention_ms=settings.metadata_max_retention_ms,
        )


class MetadataSnapshots:
    """Writes a snapshot when enough was logged, or enough time has passed, since the last one."""

    def __init__(
        self,
        quorum: QuorumHost,
        settings: SnapshotSettings,
        environment: NodeEnvironment,
        *,
        bytes_since: int,
    ) -> None:
        self._quorum = quorum
        self._settings = settings
        self._clock = environment.now
        self._threads = environment.threads(1, "metadata")
        self._log = quorum.log
        self._size_at = self._log.log.size - bytes_since
        self._written_at = self._clock().monotonic
        self._task: asyncio.Task[None] | None = None

    def consider(self, image: ClusterImage, end_offset: Offset) -> None:
        """Write a snapshot of the image, which has everything below the offset, if one is due."""
        if self._task is not None or image.is_in_transaction or not self._is_due(end_offset):
            return
        self._task = asyncio.create_task(self._write(image.copy(), end_offset))
        self._task.add_done_callback(self._done)

    def _is_due(self, end_offset: Offset) -> bool:
        latest = self._log.snapshots[-1].id.end_offset if self._log.snapshots else Offset(0)
        if end_offset <= latest:
            return False
        if self._log.log.size - self._size_at >= self._settings.log_bytes_max:
            return True
        interval_ms = self._settings.interval_ms
        waited_ms = (self._clock().monotonic - self._written_at) * 1000
        return 0 < interval_ms <= waited_ms

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("no snapshot of the metadata was written: %s", error)

    async def _write(self, image: ClusterImage, end_offset: Offset) -> None:
        self._written_at = self._clock().monotonic
        self._size_at = self._log.log.size
        epoch = self._log.log.find_epoch_of(Offset(end_offset - 1)) or LeaderEpoch(0)
        snapshot_id = SnapshotId(end_offset, epoch)
        path = f"{METADATA_FOLDER}/{snapshot_id.file_name}"
        now_ms = self._clock().wall_ms
        pieces = write_snapshot(
            image.records(),
            level=image.level,
            epoch=epoch,
            last_log_timestamp=self._log.last_timestamp,
            timestamp=now_ms,
            control=_control(self._quorum.member, end_offset),
        )
        disk = self._log.waiting
        with suppress(DiskMissingError):
            disk.remove(path + PART)
        size = 0
        # A piece has a few hundred records: encoding one is a turn of the loop.
        for piece in pieces:
            size += len(piece)
            await self._threads.run(partial(disk.append, path + PART, [piece]))
        await self._threads.run(partial(_publish, self._log, path))
        self._log.snapshots.append(StoredSnapshot(snapshot_id, size, now_ms))
        self._quorum.snapshot_written(end_offset)

    async def prune(self) -> None:
        """Let go of old snapshots and the log before the oldest that stays."""
        for gone in self._take_expired():
            with suppress(DiskError):
                await self._threads.run(partial(self._log.waiting.remove, gone.path))
        now = self._clock()
        log = self._log.log
        start = self._log.snapshots[0].id.end_offset if self._log.snapshots else Offset(0)
        if start > log.log_start:
            log.delete_records(start)
            log.apply_retention(now, up_to=start)
            self._quorum.changed()
        for path in log.take_removable(now):
            with suppress(DiskError):
                await self._threads.run(partial(self._log.waiting.remove, path))

    def _take_expired(self) -> list[StoredSnapshot]:
        snapshots = self._log.snapshots
        total = self._log.log.size + sum(snapshot.size for snapshot in snapshots)
        gone = []
        oldest_ms = self._clock().wall_ms - self._settings.retention_ms
        while len(snapshots) > 1 and (
            0 <= self._settings.retention_bytes < total
            or (self._settings.retention_ms >= 0 and snapshots[0].written_ms < oldest_ms)
        ):
            gone.append(snapshots.pop(0))
            total -= gone[-1].size
        return gone

    async def stop(self) -> None:
        """Write no more; one that is not finished is made anew another time."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def close(self) -> None:
        """End the thread; nothing is written or pruned any more."""
        self._threads.close()


def _control(member: QuorumMember, end_offset: Offset) -> list[KRaftVersionRecord | VotersRecord]:
    counted = member.voters_at(end_offset)
    if counted.kraft_version == 0:
        return []
    version = KRaftVersionRecord(kraft_version=counted.kraft_version)
    return [version, voters_record(counted.voters)]


def _publish(log: MetadataLog, path: str) -> None:
    """Make a snapshot that is written whole the latest; blocks."""
    log.waiting.sync(path + PART)
    log.waiting.rename(path + PART, path)
    log.waiting.sync_directory(METADATA_FOLDER)
