"""One log directory on the event loop: what waits for its device runs in threads of its own."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeVar

from moldau.kernel.disk import (
    Disk,
    DiskColdError,
    DiskError,
    DiskFailedError,
    DiskFullError,
    DiskMissingError,
)
from moldau.kernel.ids import Offset, TopicId, TopicPartition
from moldau.log.config import LogConfig
from moldau.log.directory import remove_folder
from moldau.log.errors import AppendError, PartitionOfflineError, StorageFullError
from moldau.log.move import Move
from moldau.log.offset_checkpoints import Checkpoint
from moldau.log.partition import PartitionLog
from moldau.log.state import Notice
from moldau.log.sync_round import SyncRound
from moldau.runtime.environment import NodeEnvironment
from moldau.runtime.free_space import FreeSpace, Space, Thresholds
from moldau.runtime.log_opening import OpenDirectory
from moldau.runtime.sync_pool import THREADS as SYNC_THREADS
from moldau.runtime.sync_pool import SyncPool
from moldau.runtime.turns import Turns

THREADS = 4
ROUNDS_MAX = 4
"""Sync rounds at once: what comes while so many are under way gathers for one."""
DIRECTORY = "log directory"  # what a notice is about that is about all of it

T = TypeVar("T")


class LogListener(Protocol):
    """Is told what happens to the logs, on the event loop unless a method says otherwise."""

    def note_durable(self, partition: TopicPartition, log: PartitionLog, /) -> None:
        """More of a log may be durable: see its `durable_offset`."""

    def lost(self, partition: TopicPartition, error: AppendError, /) -> None:
        """What was appended to a log since its last good write could not be written."""

    def moved(self, partition: TopicPartition, log: PartitionLog, /) -> None:
        """A log of the same records, in another directory, has taken a partition's place."""

    def offline(self, root: str, partitions: Sequence[TopicPartition], error: Exception, /) -> None:
        """These partitions cannot be used any more: they, or all of their log directory, failed."""

    def notice(self, root: str, notice: Notice, /) -> None:
        """A person should hear of this. From any thread."""


class DirectoryHost:
    """Drives one log directory: sync rounds, checkpoints, free space, removal of files."""

    def __init__(
        self,
        opened: OpenDirectory,
        listener: LogListener,
        environment: NodeEnvironment,
        thresholds: Thresholds | None = None,
    ) -> None:
        self.root = opened.root
        self.core = opened.core
        self.disk = opened.disk
        self.waiting = opened.waiting
        self.identity = opened.identity
        self._opened = opened
        self._listener = listener
        self._environment = environment
        self._clock = environment.now
        self._loop = asyncio.get_running_loop()
        self._threads = environment.threads(THREADS, "disk")
        self.pool = SyncPool(
            self.waiting,
            self,
            environment,
            rounds_max=ROUNDS_MAX,
            quick=self.disk.quick_syncs(SYNC_THREADS),
        )
        self._checkpointing = asyncio.Lock()
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._removals: dict[asyncio.Task[None], None] = {}
        self._is_paused = False
        self.space: FreeSpace | None = None
        total_bytes = self.disk.total_bytes()
        if total_bytes is not None:
            limits = thresholds or Thresholds.of_volume(total_bytes)
            self.space = FreeSpace(limits, free_bytes=self.disk.free_bytes())
        self.remove_later(opened.found.deleted, 0.0)

    @property
    def previous_epoch(self) -> int:
        """The broker's epoch when it closed the directory in good order; else -1."""
        epoch = self._opened.found.broker_epoch
        return -1 if epoch is None else epoch

    @property
    def is_online(self) -> bool:
        """Whether it can be used."""
        return self.core.failure is None

    # Writing.

    def admit(self, size: int) -> None:
        """Refuse records when what is left is needed for metadata and deletes."""
        if self.space is not None and not self.space.admits(size):
            self._look_at_space()
            raise StorageFullError(
                f"log directory {self.root} is full: {self.space.free_bytes} bytes are left, "
                "which are kept for metadata and deletes"
            )

    def exhausted(self) -> None:
        """The system had no room for a write."""
        if self.space is not None:
            self._note_space(self.space.exhausted())

    def fail(self, error: DiskError) -> None:
        """Take the directory offline, for good."""
        if self.core.failure is not None:
            return
        self.core.fail(error)
        text = f"the log directory is offline until the next start: {error}"
        self._listener.notice(self.root, Notice(DIRECTORY, text, is_alarming=True))
        # A copy on its way here takes nothing offline: its log is elsewhere.
        logs = [partition for partition in self.core.logs if partition not in self.core.futures]
        self._listener.offline(self.root, [*logs, *self.core.closed], error)
        self.pool.let_go()

    def broken_by(self, error: DiskFailedError) -> PartitionOfflineError:
        """Take the directory offline, and return what to tell of it."""
        self.fail(error)
        return PartitionOfflineError(str(error))

    def give_up(self, partition: TopicPartition, error: Exception) -> None:
        """Take one partition offline; if the device is broken, all."""
        if isinstance(error, DiskFailedError):
            self.fail(error)
        elif partition in self.core.logs:
            text = str(error) or repr(error)
            self.core.close_partition(partition, text)
            notice = Notice(str(partition), f"goes offline: {text}", is_alarming=True)
            self._listener.notice(self.root, notice)
            self._listener.offline(self.root, [partition], error)

    # Sync rounds.

    def take_round(self) -> SyncRound | None:
        """Return what is to be synced now."""
        if self._is_paused or not self.core.is_sync_due:
            return None
        return self.core.take_round(self._clock())

    def synced(self, sync_round: SyncRound) -> None:
        """Take note of a round."""
        self.core.synced(sync_round)

    def announce(self, sync_round: SyncRound) -> None:
        """Announce what a round has made durable."""
        for share in sync_round.partitions:
            self._listener.note_durable(share.partition, share.log)
        self.checkpoint_soon()

    def put_back(self, sync_round: SyncRound, error: DiskFullError) -> None:
        """Try again with the next tick; nothing is acknowledged until then."""
        self.core.put_back(sync_round)
        self._listener.notice(self.root, Notice(error.path, f"waits for room: {error.reason}"))
        self.exhausted()

    def failed(self, error: DiskError) -> None:
        """A sync failed."""
        self.fail(error)

    async def _rounds_under_way(self) -> None:
        """Wait until the rounds that have begun by now have ended."""
        if self.pool.is_busy and self.is_online:
            future = self._loop.create_future()
            self.pool.when_ended(partial(_settle, future))
            await future

    async def sync_all(self) -> None:
        """Wait until everything that is to be synced by now is on the device.

        `StorageFullError` if there is no room for a part of it.
        """
        self.pool.wake()
        # A log waits for a round that has a part of it, which may wait for one with new names.
        for _ in range(3):
            await self._rounds_under_way()
        if self.core.failure is not None:
            raise PartitionOfflineError(f"log directory offline: {self.core.failure}")
        if not self.pool.is_busy and self.core.is_sync_due:
            raise StorageFullError(f"log directory {self.root} has no room for checkpoints")

    async def settle(self) -> None:
        """Wait until what was written is synced, and the checkpoints say so."""
        while self.pool.is_busy and self.is_online:
            await self._rounds_under_way()
        await self.checkpoint(everything=True)

    # Checkpoints.

    def checkpoint_soon(self) -> None:
        """Write the checkpoints that are due, beside the loop."""
        if not self._checkpointing.locked() and self.core.is_checkpoint_due(self._clock()):
            self._spawn(self.checkpoint(), self._tasks)

    async def checkpoint(self, *, everything: bool = False) -> None:
        """Write the checkpoints that are due, or all."""
        async with self._checkpointing:
            checkpoints = self.core.take_checkpoints(self._clock(), everything=everything)
            with suppress(StorageFullError, PartitionOfflineError):
                await self._write(checkpoints)

    async def _write(self, checkpoints: Sequence[Checkpoint]) -> None:
        try:
            for checkpoint in checkpoints:
                await self.in_thread(partial(_replace, self.waiting, checkpoint))
        except DiskFullError as error:
            self.core.put_back_checkpoints(checkpoints)
            self.exhausted()
            raise StorageFullError(str(error)) from error
        self.core.synced_checkpoints(checkpoints)

    # Changing partitions.

    async def create(
        self, partition: TopicPartition, topic_id: TopicId, config: LogConfig
    ) -> PartitionLog:
        """Make a partition."""
        async with self._checkpointing:
            await self._write(self.core.lower(partition, Offset(0)))
            return self.core.create(partition, topic_id, config, self._clock())

    def try_create(
        self, partition: TopicPartition, topic_id: TopicId, config: LogConfig
    ) -> PartitionLog | None:
        """Make a partition, unless something on the device has to be changed before."""
        if self.core.is_remembered(partition):
            return None
        return self.core.create(partition, topic_id, config, self._clock())

    async def delete(
        self, partitions: Sequence[TopicPartition], delay_seconds: float
    ) -> list[TopicPartition]:
        """Remove partitions; their files go later. Return those that there was no room to rename.

        A directory needs room for new names, until the old ones are gone for good.
        """
        left = []
        async with self._checkpointing:
            folders = []
            turns = Turns(self._environment.stopwatch)
            for partition in partitions:
                try:
                    folder = self.guard(partial(self.core.delete, partition))
                except DiskFullError:
                    left.append(partition)
                    continue
                folders += [] if folder is None else [folder]
                await turns.give_way()
            # It may still write to a folder's old name, which must not mean a new partition yet.
            await self._rounds_under_way()
        if folders:
            self.pool.wake()
            self.remove_later(folders, delay_seconds)
        return left

    async def set_aside(self, partition: TopicPartition) -> str:
        """Make room for a partition's name, and keep its files; return their folder."""
        async with self._checkpointing:
            folder = self.guard(lambda: self.core.set_aside(partition))
            await self._rounds_under_way()
        self.pool.wake()
        text = f"was set aside as {folder}"
        self._listener.notice(self.root, Notice(str(partition), text))
        return folder

    async def truncate(self, partition: TopicPartition, to: Offset) -> None:
        """Cut a log at `to`."""
        async with self._checkpointing:
            cut = await self.warmed(lambda: self.core.find_cut(partition, to))
            await self._write(self.core.lower(partition, cut))
            await self.warmed(lambda: self.core.truncate(partition, to, self._clock()))
        self.pool.wake()

    async def start_over(self, partition: TopicPartition, at: Offset) -> None:
        """Empty a log, which goes on at `at`."""
        async with self._checkpointing:
            self.core.get(partition)
            await self._write(self.core.lower(partition, Offset(0)))
            self.guard(lambda: self.core.start_over(partition, at, self._clock()))
        self.pool.wake()

    async def delete_records(self, partition: TopicPartition, before: Offset) -> Offset:
        """Move the log start; when this returns, a crash does not bring the records back."""
        async with self._checkpointing:
            start = self.core.get(partition).delete_records(before)
            await self._write(self.core.note_log_start(partition))
        self.core.note_change(partition, self._clock())
        self.pool.wake()
        return start

    # Moving logs to other directories, and from there.

    def changing(self) -> asyncio.Lock:
        """Return what keeps others from creating, cutting and deleting logs here meanwhile."""
        return self._checkpointing

    async def begin(self, move: Move, start: Offset) -> None:
        """Make the copy of a log that comes here, unless a start has found it."""
        if move.partition in self.core.futures:
            return
        async with self._checkpointing:
            await self._write(self.core.lower(move.partition, Offset(0)))
            self.guard(lambda: move.begin(start, self._clock()))
        self.pool.wake()

    async def store_checkpoints(self) -> None:
        """Write all checkpoints; `StorageFullError` if there is no room."""
        async with self._checkpointing:
            await self._write(self.core.take_checkpoints(self._clock(), everything=True))

    async def promote(self, rename: Callable[[], None]) -> None:
        """Rename the folder of a copy that came here, between two sync rounds."""
        async with self._checkpointing:
            self._is_paused = True
            try:
                await self._rounds_under_way()
                self.guard(rename)
            finally:
                self._is_paused = False
                self.pool.wake()

    # Time.

    def tick(self) -> None:
        """Once a second: look at the free space, sync and write what has become due."""
        if not self.is_online:
            return
        self._look_at_space()
        self.core.tick(self._clock())
        self.pool.wake()
        self.checkpoint_soon()

    def _look_at_space(self) -> None:
        if self.space is not None:
            self._note_space(self.space.observe(self.guard(self.disk.free_bytes)))

    def _note_space(self, changed: Space | None) -> None:
        assert self.space is not None
        match changed:
            case None:
                return
            case Space.AMPLE:
                text = "there is room again"
            case Space.LOW:
                text = "the disk is filling up"
            case Space.RESERVED:
                text = "the disk is full: records are refused until there is room"
        text += f"; {self.space.free_bytes >> 20} MB are free"
        is_alarming = changed is Space.RESERVED
        self._listener.notice(self.root, Notice(DIRECTORY, text, is_alarming=is_alarming))

    # Beside the loop.

    def guard(self, call: Callable[[], T]) -> T:
        """Call; if the device fails, so does the directory."""
        try:
            return call()
        except DiskFailedError as error:
            raise self.broken_by(error) from error

    async def warmed(self, call: Callable[[], T]) -> T:
        """Call on the loop, as often as it takes to have in memory what it reads."""
        while True:
            try:
                return self.guard(call)
            except DiskColdError as error:
                cold = error
            await self._warm(cold)

    def warm_soon(self, error: DiskColdError) -> None:
        """Bring into memory what was missing there."""
        self._spawn(self._warm(error), self._tasks)

    async def _warm(self, error: DiskColdError) -> None:
        with suppress(DiskMissingError):
            await self.in_thread(partial(self.waiting.read, error.path, error.position, error.size))

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Call in a thread; if the device fails, so does the directory."""
        try:
            return await self._threads.run(call)
        except DiskFailedError as error:
            raise self.broken_by(error) from error

    async def remove(self, paths: Sequence[str]) -> None:
        """Remove files that have left their logs."""
        if paths:
            await self.in_thread(partial(_remove_all, self.waiting, paths))

    def _spawn(
        self, work: Coroutine[Any, Any, None], tasks: dict[asyncio.Task[None], None]
    ) -> None:
        """Run something that nobody waits for before the end."""

        def done(task: asyncio.Task[None]) -> None:
            del tasks[task]
            if not task.cancelled() and (error := task.exception()):
                self._listener.notice(self.root, Notice(DIRECTORY, str(error)))

        task = self._loop.create_task(work)
        tasks[task] = None
        task.add_done_callback(done)

    def remove_later(self, folders: Sequence[str], delay_seconds: float) -> None:
        """Remove folders that have left the logs, after a while."""
        if folders:
            self._spawn(self._remove(folders, delay_seconds), self._removals)

    async def _remove(self, folders: Sequence[str], delay_seconds: float) -> None:
        await self._environment.sleep(delay_seconds)
        for folder in folders:
            await self._remove_folder(folder)

    async def _remove_folder(self, folder: str) -> None:
        try:
            await self.in_thread(lambda: [None for _ in remove_folder(self.waiting, folder)])
        except (DiskError, PartitionOfflineError) as error:
            text = f"cannot be removed, which the next start tries again: {error}"
            self._listener.notice(self.root, Notice(folder, text))

    # The end.

    async def close(self, broker_epoch: int) -> bool:
        """Close in good order; say whether the next start finds it so."""
        for removal in list(self._removals):
            removal.cancel()
        await asyncio.gather(*self._tasks, *self._removals, return_exceptions=True)
        try:
            return self.is_online and await self._close(broker_epoch)
        except (DiskError, StorageFullError, PartitionOfflineError) as error:
            text = f"was not closed in good order; the next start checks it: {error}"
            self._listener.notice(self.root, Notice(DIRECTORY, text, is_alarming=True))
            return False
        finally:
            self.pool.close()
            self._threads.close()
            if self._opened.lock is not None:
                self._opened.lock.release()

    async def _close(self, broker_epoch: int) -> bool:
        self.guard(self.core.close)
        # What a round under way has not taken comes with the next, which follows at once.
        self.pool.wake()
        while self.pool.is_busy and self.is_online:
            await self._rounds_under_way()
        async with self._checkpointing:
            await self._write(self.core.take_checkpoints(self._clock(), everything=True))
        return await self.in_thread(partial(self.core.mark_clean, self.waiting, broker_epoch))


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _replace(disk: Disk, checkpoint: Checkpoint) -> None:
    disk.replace(checkpoint.path, checkpoint.render())


def _remove_all(disk: Disk, paths: Sequence[str]) -> None:
    for path in paths:
        with suppress(DiskMissingError):
            disk.remove(path)
