"""All logs of a broker, in one or several log directories, on an asyncio loop."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from moldau._native.records import Batch
from moldau.kernel.clock import Instant
from moldau.kernel.disk import Buffer, DiskError, DiskFailedError
from moldau.kernel.ids import LeaderEpoch, Offset, TopicId, TopicPartition
from moldau.log.appending import Appended
from moldau.log.config import DAY_MS, FSYNC, Durability, LogConfig
from moldau.log.errors import (
    AppendError,
    DirectoryRefusedError,
    PartitionOfflineError,
    StorageFullError,
)
from moldau.log.partition import PartitionLog
from moldau.log.producers import Origin
from moldau.log.state import Notice
from moldau.log.validation import Checked, Writable
from moldau.runtime.cleaner import Cleaner, CleanerSettings
from moldau.runtime.compacted_logs import HostedLogs
from moldau.runtime.directory_host import DIRECTORY, DirectoryHost, LogListener
from moldau.runtime.free_space import Thresholds
from moldau.runtime.log_opening import (
    OpenContext,
    OpenDirectory,
    open_directory,
    open_in_memory,
)
from moldau.runtime.turns import collection_paused

Chore = Callable[[DirectoryHost, TopicPartition, PartitionLog], Coroutine[Any, Any, None]]

TICK_SECONDS = 1.0
SLICE_PARTITIONS = 64
"""How many partitions a chore looks at before others have their turn on the loop."""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """The broker's `log.*` settings, with Kafka's defaults."""

    retention_check_interval_ms: int = 300_000
    removal_interval_ms: int = 10_000
    producer_expiration_check_interval_ms: int = 600_000
    producer_id_expiration_ms: int = DAY_MS
    cleaner: CleanerSettings | None = field(default_factory=CleanerSettings)
    """None: nothing is compacted."""
    thresholds: Thresholds | None = None
    """None: as the size of each volume suggests."""


class LogStore:
    """The logs by partition, wherever they are.

    Per wake-up: any number of appends, then one `write`. The listener hears when something is
    stored. `AppendError` says why something cannot be done; it never breaks anything else.
    """

    def __init__(
        self,
        directories: Sequence[OpenDirectory],
        context: OpenContext,
        listener: LogListener,
        settings: StoreSettings,
    ) -> None:
        self._context = context
        self._listener = listener
        self._settings = settings
        self.hosts = [
            DirectoryHost(opened, listener, context.clock, settings.thresholds, context.sleep)
            for opened in directories
        ]
        self._places = self._find_places()
        self._staged: dict[TopicPartition, tuple[DirectoryHost, PartitionLog]] = {}
        self._now: Instant | None = None  # of this wake-up
        self.cleaner: Cleaner | None = None
        if settings.cleaner is not None:
            logs = HostedLogs(self._places, context.clock, listener)
            self.cleaner = Cleaner(
                logs,
                settings.cleaner,
                clock=context.clock,
                entropy=context.entropy,
                sleep=context.sleep,
            )

    @classmethod
    async def open(
        cls,
        roots: Sequence[str],
        context: OpenContext,
        listener: LogListener,
        settings: StoreSettings | None = None,
    ) -> "LogStore":
        """Open all log directories at once; one that is broken is left out, unless all are."""
        if context.durability is Durability.MEMORY:
            return cls([open_in_memory(context)], context, listener, settings or StoreSettings())
        with collection_paused():
            results = await asyncio.gather(
                *(asyncio.to_thread(open_directory, root, context) for root in roots),
                return_exceptions=True,
            )
        opened = [result for result in results if isinstance(result, OpenDirectory)]
        try:
            _check_opened(roots, results, listener)
        except BaseException:
            for directory in opened:
                if directory.lock is not None:
                    directory.lock.release()
            raise
        return cls(opened, context, listener, settings or StoreSettings())

    def configure(self, settings: StoreSettings) -> None:
        """Go by other settings: how long producers are kept, and how compaction works."""
        self._settings = settings
        if self.cleaner is not None and settings.cleaner is not None:
            self.cleaner.configure(settings.cleaner)

    # Finding.

    def get(self, partition: TopicPartition) -> PartitionLog:
        """Return a log that can be used; `KeyError` if there is none."""
        return self._places[partition].core.get(partition)

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._places

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._places)

    def place_of(self, partition: TopicPartition) -> DirectoryHost:
        """Return the log directory that a partition is in."""
        return self._places[partition]

    # Writing.

    def append(
        self,
        partition: TopicPartition,
        data: Writable,
        checked: Checked,
        *,
        leader_epoch: LeaderEpoch,
        now: Instant | None = None,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> Appended:
        """Stage batches as the leader; see `PartitionLog.append`.

        Whoever knows the time says so: clocks are slow to read.
        """
        self._now = now = now or self._now or self._context.clock()
        host = self._places[partition]
        log = host.core.get(partition)
        host.admit(len(data))
        try:
            host.core.make_folder(partition)
            appended = log.append(
                data,
                checked,
                leader_epoch=leader_epoch,
                now=now,
                origin=origin,
                transaction_version=transaction_version,
            )
        except DiskFailedError as error:
            raise host.broken_by(error) from error
        self._staged[partition] = host, log
        return appended

    def append_stored(self, partition: TopicPartition, data: Buffer, batches: list[Batch]) -> None:
        """Stage batches as a follower; see `PartitionLog.append_stored`."""
        host = self._places[partition]
        log = host.core.get(partition)
        host.admit(len(data))
        host.guard(lambda: host.core.make_folder(partition))
        self._now = self._now or self._context.clock()
        log.append_stored(data, batches, now=self._now)
        self._staged[partition] = host, log

    def write(self) -> dict[TopicPartition, AppendError]:
        """Write everything staged; return what could not be, and why."""
        failures: dict[TopicPartition, AppendError] = {}
        if not self._staged:
            return failures
        staged, self._staged = self._staged, {}
        hosts: dict[DirectoryHost, None] = {}
        now = self._now or self._context.clock()
        self._now = None
        for partition, (host, log) in staged.items():
            hosts[host] = None
            try:
                log.write()
            except DiskFailedError as error:
                failures[partition] = host.broken_by(error)
                continue
            except AppendError as error:
                failures[partition] = error
                if isinstance(error, StorageFullError):
                    host.exhausted()
                continue
            host.core.note_change(partition, now)
            if self._context.durability is not FSYNC:
                self._listener.stored(partition, log)
        for host in hosts:
            host.pool.wake()
        return failures

    def changed(self, partition: TopicPartition) -> None:
        """A log was changed otherwise, as by a new leader epoch: have it synced."""
        if host := self._places.get(partition):
            host.core.note_change(partition, self._context.clock())
            host.pool.wake()

    def failed(self, partition: TopicPartition, error: Exception) -> None:
        """Reading a log has shown that it, or its directory, is broken."""
        self._places[partition].give_up(partition, error)

    # Changing partitions.

    async def create(
        self, partition: TopicPartition, topic_id: TopicId, config: LogConfig
    ) -> PartitionLog:
        """Make a partition in the log directory with the fewest; its files come when it is used."""
        host = self._place_for(partition)
        try:
            return await host.create(partition, topic_id, config)
        except BaseException:
            del self._places[partition]
            raise

    def try_create(
        self, partition: TopicPartition, topic_id: TopicId, config: LogConfig
    ) -> PartitionLog | None:
        """Make a partition at once; None if `create` has to wait for the disk."""
        host = self._place_for(partition)
        log = host.try_create(partition, topic_id, config)
        if log is None:
            del self._places[partition]
        return log

    def _place_for(self, partition: TopicPartition) -> DirectoryHost:
        online = [host for host in self.hosts if host.is_online]
        if not online:
            raise PartitionOfflineError("all log directories are offline")
        host = min(online, key=lambda host: len(host.core.logs))
        self._places[partition] = host
        return host

    async def delete(self, *partitions: TopicPartition) -> None:
        """Remove partitions; several at once wait for the disk only once."""
        by_host: dict[DirectoryHost, list[TopicPartition]] = {}
        for partition in partitions:
            by_host.setdefault(self._leave(partition), []).append(partition)
        for host, theirs in by_host.items():
            await host.delete(theirs, self._delay_ms(host, theirs) / 1000)
            for partition in theirs:
                del self._places[partition]

    def _delay_ms(self, host: DirectoryHost, partitions: Sequence[TopicPartition]) -> int:
        delay_ms = 0
        for partition in partitions:
            log = host.core.logs.get(partition)
            config = self._context.config_of(partition.topic) if log is None else log.config
            delay_ms = max(delay_ms, config.file_delete_delay_ms)
        return delay_ms

    async def set_aside(self, partition: TopicPartition) -> str:
        """Make room for a partition's name, and keep its files; return their folder."""
        folder = await self._leave(partition).set_aside(partition)
        del self._places[partition]
        return folder

    async def truncate(self, partition: TopicPartition, to: Offset) -> None:
        """Cut a log at `to`."""
        await self._leave(partition).truncate(partition, to)

    async def start_over(self, partition: TopicPartition, at: Offset) -> None:
        """Empty a log, which goes on at `at`."""
        await self._leave(partition).start_over(partition, at)

    async def delete_records(self, partition: TopicPartition, before: Offset) -> Offset:
        """Answer DeleteRecords."""
        return await self._places[partition].delete_records(partition, before)

    def _leave(self, partition: TopicPartition) -> DirectoryHost:
        """Have compaction keep away from a partition."""
        assert partition not in self._staged, "write before"
        if self.cleaner is not None:
            self.cleaner.abort(partition)
            self.cleaner.stats.uncleanable.discard(partition)
        return self._places[partition]

    # Chores.

    async def run(self) -> None:
        """Do what has to be done from time to time, until cancelled."""
        settings = self._settings
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tick())
            group.create_task(
                self._sweep(settings.retention_check_interval_ms, self._apply_retention)
            )
            group.create_task(self._sweep(settings.removal_interval_ms, self._remove_files))
            group.create_task(
                self._sweep(settings.producer_expiration_check_interval_ms, self._expire_producers)
            )
            if self.cleaner is not None:
                group.create_task(self.cleaner.run())

    async def do_chores(self) -> None:
        """Do now what is done from time to time; compaction begins, and goes on by itself."""
        self._tick_once()
        # Retention twice: a segment can go when the one behind it is durable, which it may make.
        for chore in (
            self._apply_retention,
            self._apply_retention,
            self._remove_files,
            self._expire_producers,
        ):
            for host in self.hosts:
                await host.settle()
            await self._sweep_once(chore)
        if self.cleaner is not None:
            self.cleaner.wake()

    async def _tick(self) -> None:
        while True:
            await self._context.sleep(TICK_SECONDS)
            self._tick_once()

    def _tick_once(self) -> None:
        for host in self.hosts:
            with suppress(PartitionOfflineError):
                host.tick()

    async def _sweep(self, interval_ms: int, chore: Chore) -> None:
        while True:
            await self._context.sleep(interval_ms / 1000)
            await self._sweep_once(chore)

    async def _sweep_once(self, chore: Chore) -> None:
        """Do a chore for every partition, in slices."""
        for number, (partition, host) in enumerate(list(self._places.items())):
            log = host.core.logs.get(partition)
            if log is not None and host.is_online and partition not in self._staged:
                try:
                    await chore(host, partition, log)
                except AppendError:
                    pass  # the directory has failed, and everybody was told
                except Exception as error:  # noqa: BLE001 - its files are not what they were
                    host.give_up(partition, error)
            if number % SLICE_PARTITIONS == SLICE_PARTITIONS - 1:
                await asyncio.sleep(0)

    async def _apply_retention(
        self, host: DirectoryHost, partition: TopicPartition, log: PartitionLog
    ) -> None:
        if self.cleaner is not None and self.cleaner.is_compacting(partition):
            return  # it reads the segments; the next time will do
        now = self._context.clock()
        up_to = host.core.removable_to(partition)
        removed = await host.warmed(lambda: log.apply_retention(now, up_to=up_to))
        if removed or log.is_sync_due(now):
            # Not only what is gone: the last segment of an idle log goes when a new one is durable.
            self.changed(partition)

    async def _expire_producers(
        self, _host: DirectoryHost, _: TopicPartition, log: PartitionLog
    ) -> None:
        log.expire_producers(self._context.clock(), self._settings.producer_id_expiration_ms)

    async def _remove_files(
        self, host: DirectoryHost, _: TopicPartition, log: PartitionLog
    ) -> None:
        await host.remove(log.take_removable(self._context.clock()))

    # The end.

    async def close(self, broker_epoch: int = -1) -> bool:
        """Close all directories in good order; say whether the next start finds them so."""
        self.write()
        closed = await asyncio.gather(*(host.close(broker_epoch) for host in self.hosts))
        return all(closed)

    def _find_places(self) -> dict[TopicPartition, DirectoryHost]:
        places: dict[TopicPartition, DirectoryHost] = {}
        for host in self.hosts:
            for partition in [*host.core.logs, *host.core.closed]:
                other = places.setdefault(partition, host)
                if other is not host:
                    text = f"is in {other.root} and in {host.root}: move one of the two away"
                    for place in (other, host):
                        place.core.close_partition(partition, text)
                    notice = Notice(str(partition), text, is_alarming=True)
                    self._listener.notice(host.root, notice)
        return places


def _check_opened(
    roots: Sequence[str],
    results: Sequence[OpenDirectory | BaseException],
    listener: LogListener,
) -> None:
    """Raise if the broker must not start; tell of directories that it has to do without."""
    ids: dict[bytes | None, str] = {}
    broken: list[DiskError] = []
    for root, result in zip(roots, results, strict=True):
        match result:
            case DiskError() as error:
                text = f"the log directory is offline until the next start: {error}"
                listener.notice(root, Notice(DIRECTORY, text, is_alarming=True))
                listener.offline(root, (), error)
                broken.append(error)
            case BaseException() as error:
                raise error
            case OpenDirectory():
                other = ids.setdefault(result.identity.directory_id, root)
                if other != root:
                    raise DirectoryRefusedError(
                        f"{root} and {other} have the same directory id: one is a copy"
                    )
    if len(broken) == len(roots):
        reasons = "; ".join(map(str, broken))
        raise DiskFailedError("", f"all log directories are offline: {reasons}")
