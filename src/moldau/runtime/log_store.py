"""All logs of a broker, in one or several log directories, on an asyncio loop."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from moldau.kernel.clock import Instant
from moldau.kernel.disk import DiskError, DiskFailedError
from moldau.kernel.ids import Offset, TopicId, TopicPartition
from moldau.log.config import DAY_MS, Durability, LogConfig
from moldau.log.errors import (
    AppendError,
    DirectoryRefusedError,
    PartitionOfflineError,
)
from moldau.log.partition import PartitionLog
from moldau.log.state import Notice
from moldau.runtime.cleaner import Cleaner, CleanerSettings
from moldau.runtime.compacted_logs import HostedLogs
from moldau.runtime.directory_host import DIRECTORY, DirectoryHost, LogListener
from moldau.runtime.free_space import FreeSpace, Thresholds
from moldau.runtime.log_chores import LogChores
from moldau.runtime.log_moves import LogMoves
from moldau.runtime.log_opening import (
    OpenContext,
    OpenDirectory,
    open_directory,
    open_in_memory,
)
from moldau.runtime.log_writes import LogWrites
from moldau.runtime.turns import collection_paused

PREFERRED_MAX = 10_000
"""How many wishes for partitions that are not there yet are remembered; the oldest go first."""


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

    Per wake-up: any number of appends, then one `write`. The listener hears when more is
    durable. `AppendError` says why something cannot be done; it never breaks anything else.
    """

    def __init__(
        self,
        directories: Sequence[OpenDirectory],
        context: OpenContext,
        listener: LogListener,
        settings: StoreSettings,
    ) -> None:
        self._context = context
        self.environment = context.environment
        self._listener = listener
        self.settings = settings
        self.hosts = [
            DirectoryHost(opened, listener, self.environment, settings.thresholds)
            for opened in directories
        ]
        self._places = self._find_places()
        self.writes = LogWrites(listener, self.environment)
        self._preferred: dict[TopicPartition, DirectoryHost] = {}
        self.moves = LogMoves(
            self.hosts,
            self._places,
            self.environment.now,
            listener,
            flush=self.write,
            abort_compaction=self._abort_compaction,
        )
        self._chores = LogChores(self, self.environment)
        self.cleaner: Cleaner | None = None
        if settings.cleaner is not None:
            logs = HostedLogs(self._places, self.environment.now, listener, self.moves)
            self.cleaner = Cleaner(logs, settings.cleaner, self.environment)

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
        threads = context.environment.threads(len(roots), "open")
        with collection_paused():
            results = await asyncio.gather(
                *(threads.run(partial(open_directory, root, context)) for root in roots),
                return_exceptions=True,
            )
        threads.close()
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
        self.settings = settings
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

    def stage(self, partition: TopicPartition, log: PartitionLog, size: int, now: Instant) -> None:
        """Make room for an append to a log, and give the log to the disk with the next `write`."""
        end = log.end
        host = self._places[partition]
        if end.handed_write is not None:
            end.settle()  # what comes now may be more than pieces for the last segment
            if host.core.failure is not None:
                raise PartitionOfflineError(f"log directory offline: {host.core.failure}")
        if end.enlist(size, now):
            return
        host.admit(size)
        try:
            host.core.make_folder(partition)
        except DiskFailedError as error:
            raise host.broken_by(error) from error
        self.writes.berth(partition, host, log)
        end.enlist(0, now)

    def use_space(self, host: DirectoryHost, space: FreeSpace | None) -> None:
        """Have a directory go by another count of its free space; None: there is always room."""
        host.space = space
        for partition, log in host.core.logs.items():
            self.writes.berth(partition, host, log)

    def write(self) -> dict[TopicPartition, AppendError]:
        """Write everything staged; return what could not be, and why."""
        return self.writes.write()

    def changed(self, partition: TopicPartition) -> None:
        """A log was changed otherwise, as by a new leader epoch: have it synced."""
        if host := self._places.get(partition):
            host.core.note_change(partition, self.environment.now())
            host.pool.wake()

    def failed(self, partition: TopicPartition, error: Exception) -> None:
        """Reading a log has shown that it, or its directory, is broken."""
        self._places[partition].give_up(partition, error)

    # Changing partitions.

    def move(self, partition: TopicPartition, root: str) -> None:
        """Have a partition's log in another directory; one that is not there yet, when it is."""
        target = next(host for host in self.hosts if os.path.abspath(host.root) == root)
        if partition in self._places:
            self.moves.wish(partition, target)
            return
        self._preferred.pop(partition, None)
        self._preferred[partition] = target
        if len(self._preferred) > PREFERRED_MAX:
            del self._preferred[next(iter(self._preferred))]

    async def create(
        self,
        partition: TopicPartition,
        topic_id: TopicId,
        config: LogConfig,
        directory_id: bytes | None = None,
    ) -> PartitionLog:
        """Make a partition; its files come when it is used.

        In the directory with that id, or the one that somebody has wished for, or that with the
        fewest.
        """
        host = self._place_for(partition, directory_id)
        try:
            log = await host.create(partition, topic_id, config)
        except BaseException:
            del self._places[partition]
            raise
        self._preferred.pop(partition, None)
        return log

    def try_create(
        self,
        partition: TopicPartition,
        topic_id: TopicId,
        config: LogConfig,
        directory_id: bytes | None = None,
    ) -> PartitionLog | None:
        """Make a partition at once; None if `create` has to wait for the disk."""
        host = self._place_for(partition, directory_id)
        log = host.try_create(partition, topic_id, config)
        if log is None:
            del self._places[partition]
        else:
            self._preferred.pop(partition, None)
        return log

    def _place_for(self, partition: TopicPartition, directory_id: bytes | None) -> DirectoryHost:
        online = [host for host in self.hosts if host.is_online]
        if not online:
            raise PartitionOfflineError("all log directories are offline")
        host = min(online, key=lambda host: len(host.core.logs))
        wished = self._preferred.get(partition, host)
        for candidate in online:
            if candidate.identity.directory_id == directory_id:
                wished = candidate
        host = wished if wished.is_online else host
        self._places[partition] = host
        return host

    async def delete(self, *partitions: TopicPartition) -> list[TopicPartition]:
        """Remove partitions; several at once wait for the disk only once.

        Returns those that a full disk has kept.
        """
        left: list[TopicPartition] = []
        by_host: dict[DirectoryHost, list[TopicPartition]] = {}
        for partition in partitions:
            await self.moves.stop(partition)
        for partition in partitions:
            by_host.setdefault(self._leave(partition), []).append(partition)
        for host, theirs in by_host.items():
            kept = await host.delete(theirs, self._delay_ms(host, theirs) / 1000)
            left += kept
            for partition in theirs:
                if partition not in kept:
                    del self._places[partition]
        return left

    def _delay_ms(self, host: DirectoryHost, partitions: Sequence[TopicPartition]) -> int:
        delay_ms = 0
        for partition in partitions:
            log = host.core.logs.get(partition)
            config = self._context.config_of(partition.topic) if log is None else log.config
            delay_ms = max(delay_ms, config.file_delete_delay_ms)
        return delay_ms

    async def set_aside(self, partition: TopicPartition) -> str:
        """Make room for a partition's name, and keep its files; return their folder."""
        await self.moves.stop(partition)
        folder = await self._leave(partition).set_aside(partition)
        del self._places[partition]
        return folder

    async def truncate(self, partition: TopicPartition, to: Offset) -> None:
        """Cut a log at `to`."""
        async with self._standing(partition):
            await self._leave(partition).truncate(partition, to)

    async def start_over(self, partition: TopicPartition, at: Offset) -> None:
        """Empty a log, which goes on at `at`."""
        async with self._standing(partition):
            await self._leave(partition).start_over(partition, at)

    @asynccontextmanager
    async def _standing(self, partition: TopicPartition) -> AsyncIterator[None]:
        """Stop a log that is on its way; it sets out again afterwards."""
        target = self.moves.target_of(partition)
        await self.moves.stop(partition)
        yield
        if target is not None:
            self.moves.wish(partition, target)

    async def delete_records(self, partition: TopicPartition, before: Offset) -> Offset:
        """Answer DeleteRecords."""
        while True:
            host = self._places[partition]
            try:
                return await host.delete_records(partition, before)
            except KeyError:
                if self._places.get(partition) is host:
                    raise
                # It was moved meanwhile.

    def _leave(self, partition: TopicPartition) -> DirectoryHost:
        """Have compaction keep away from a partition."""
        host = self._places[partition]
        if (log := host.core.logs.get(partition)) is not None:
            log.end.settle()
        assert not self.is_staged(partition), "write before"
        self._abort_compaction(partition)
        return host

    def _abort_compaction(self, partition: TopicPartition) -> None:
        if self.cleaner is not None:
            self.cleaner.abort(partition)
            self.cleaner.stats.uncleanable.discard(partition)

    # Chores.

    async def run(self) -> None:
        """Do what has to be done from time to time, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.moves.run())
            group.create_task(self._chores.run())
            if self.cleaner is not None:
                group.create_task(self.cleaner.run())

    async def do_chores(self) -> None:
        """Do all of that now; compaction begins, and goes on by itself."""
        await self._chores.do_all()
        if self.cleaner is not None:
            self.cleaner.wake()

    @property
    def places(self) -> Mapping[TopicPartition, DirectoryHost]:
        """The directory of each partition."""
        return self._places

    def is_staged(self, partition: TopicPartition) -> bool:
        """Whether something waits for `write`."""
        log = self._places[partition].core.logs.get(partition)
        return log is not None and (log.end.is_staged or log.end.handed_write is not None)

    def is_compacting(self, partition: TopicPartition) -> bool:
        """Whether a partition's segments are being read."""
        return self.cleaner is not None and self.cleaner.is_compacting(partition)

    # The end.

    async def close(self, broker_epoch: int = -1) -> bool:
        """Close all directories in good order; say whether the next start finds them so."""
        self.write()
        self.writes.close()
        closed = await asyncio.gather(*(host.close(broker_epoch) for host in self.hosts))
        return all(closed)

    def _find_places(self) -> dict[TopicPartition, DirectoryHost]:
        places: dict[TopicPartition, DirectoryHost] = {}
        for host in self.hosts:
            for partition in [*host.core.logs, *host.core.closed]:
                if partition in host.core.futures:
                    continue
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
