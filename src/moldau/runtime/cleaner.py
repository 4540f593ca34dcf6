"""Compaction beside the event loop: threads do the work, the loop swaps the segments.

A thread that ran Python all the time would hold the loop up by 5 ms whenever the two meet. So the
work is in kernels and system calls that release the interpreter's lock. (To sleep a little between
steps made it worse: every time, the scheduler looked for a core anew, and found the loop's.)
"""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Protocol

from moldau.kernel.clock import Instant
from moldau.kernel.disk import Disk, DiskError, DiskFullError, DiskMissingError
from moldau.kernel.errors import ProtocolError
from moldau.kernel.ids import Offset, TopicPartition
from moldau.log.compaction.plan import CompactionPlan, LogView, choose, make_plan
from moldau.log.compaction.rewrite import SegmentOverflowError
from moldau.log.compaction.run import Compaction, CompactionLimits, CompactionStep, Swap, Worked
from moldau.log.compaction.swap import Replacement
from moldau.log.compaction.throttle import Throttle
from moldau.log.errors import CorruptIndexError
from moldau.runtime.environment import NodeEnvironment, Threads


@dataclass(frozen=True, slots=True)
class CleanerSettings:
    """`log.cleaner.*`, with Kafka's defaults; memory is for all threads together."""

    threads: int = 1
    dedupe_buffer_size: int = 128 << 20
    io_buffer_size: int = 512 << 10
    io_buffer_load_factor: float = 0.9
    io_max_bytes_per_second: float = inf
    backoff_ms: int = 15_000

    @property
    def limits(self) -> CompactionLimits:
        """What one compaction may use: of the I/O buffers, half is for what is written."""
        return CompactionLimits(
            keys_bytes=self.dedupe_buffer_size // self.threads,
            io_bytes=self.io_buffer_size // self.threads // 2,
            load_factor=self.io_buffer_load_factor,
        )


class CompactedLogs(Protocol):
    """The compacted partitions of a broker; everything here is called on the event loop."""

    def views(self) -> Iterable[LogView]:
        """Return all that are online, without what is known of their producers."""

    def find_view(self, partition: TopicPartition, /) -> LogView | None:
        """Return one with its producers, None if it is gone."""

    def disk_of(self, partition: TopicPartition, /) -> Disk:
        """Return its disk, with reads that wait for the device."""

    def cleaned_to(self, partition: TopicPartition, /) -> Offset | None:
        """Return what cleaner-offset-checkpoint says."""

    def set_cleaned_to(self, partition: TopicPartition, offset: Offset, /) -> None:
        """Note an offset for cleaner-offset-checkpoint."""

    def swap(self, view: LogView, replacement: Replacement, /) -> bool:
        """Swap if the log is still what `view` has seen; the directory is synced afterwards."""

    def compaction_failed(self, partition: TopicPartition, error: Exception, /) -> None:
        """A disk failed, or the log is damaged: the partition is left alone from now on."""


@dataclass(slots=True)
class CleanerStats:
    """What the metrics show."""

    dirty_ratio_max: float = 0.0
    overdue_ms_max: int = 0
    last_run: Instant | None = None
    compactions: int = 0
    aborted: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_kept: int = 0
    keys_used_last: float = 0.0
    uncleanable: set[TopicPartition] = field(default_factory=set)


class Cleaner:
    """Compacts the dirtiest partition, again and again, in each of its threads."""

    def __init__(
        self,
        logs: CompactedLogs,
        settings: CleanerSettings,
        environment: NodeEnvironment,
    ) -> None:
        self.stats = CleanerStats()
        self._logs = logs
        self._settings = settings
        self._environment = environment
        self._clock = environment.now
        self._running: dict[TopicPartition, asyncio.Event] = {}
        self._throttle: Throttle | None = None
        self._wake = asyncio.Event()
        self._configured = asyncio.Event()
        self._set_throttle()

    def configure(self, settings: CleanerSettings) -> None:
        """Go by other settings; a thread too many ends when it has finished its partition."""
        self._settings = settings
        self._set_throttle()
        self._configured.set()
        self.wake()

    def _set_throttle(self) -> None:
        rate = self._settings.io_max_bytes_per_second
        self._throttle = None if rate == inf else Throttle(rate, self._clock())

    async def run(self) -> None:
        """Work until cancelled; the threads stop after the step that they are at."""
        workers: dict[int, asyncio.Task[None]] = {}
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    for number in range(self._settings.threads):
                        if number not in workers or workers[number].done():
                            workers[number] = group.create_task(self._work(number))
                    await self._configured.wait()
                    self._configured.clear()
        finally:
            for abort in self._running.values():
                abort.set()

    def abort(self, partition: TopicPartition) -> None:
        """Give up compacting a partition that is to be truncated or deleted."""
        if abort := self._running.get(partition):
            abort.set()

    def is_compacting(self, partition: TopicPartition) -> bool:
        """Whether a thread is at it: its segments had better stay."""
        return partition in self._running

    def wake(self) -> None:
        """Look for work now: settings have changed, or a segment was closed."""
        self._wake.set()

    async def _work(self, number: int) -> None:
        """Work in a thread as long as there are more threads than `number`."""
        threads = self._environment.threads(1, "cleaner")
        try:
            while number < self._settings.threads:
                plan = self._next_plan()
                if plan is not None:
                    await self._compact(plan, threads)
                    continue
                self._wake.clear()
                await self._environment.sleep(self._settings.backoff_ms / 1000, self._wake)
        finally:
            threads.close(wait=False)

    def _next_plan(self) -> CompactionPlan | None:
        """Choose the dirtiest partition; those that another thread works on are left out."""
        now = self._clock()
        logs, stats = self._logs, self.stats
        plans = []
        for log in logs.views():
            partition = log.partition
            if partition in self._running or partition in stats.uncleanable:
                continue
            plan = make_plan(log, logs.cleaned_to(partition), now.wall_ms)
            if plan.checkpoint_was_wrong:
                logs.set_cleaned_to(partition, plan.first_dirty)
            plans.append(plan)
        stats.last_run = now
        stats.dirty_ratio_max = max((plan.dirty_ratio for plan in plans), default=0.0)
        stats.overdue_ms_max = max((plan.overdue_ms for plan in plans), default=0)
        chosen = choose(plans)
        if chosen is None:
            return None
        view = logs.find_view(chosen.log.partition)
        return None if view is None else make_plan(view, chosen.first_dirty, now.wall_ms)

    async def _compact(self, plan: CompactionPlan, threads: Threads) -> None:
        partition = plan.log.partition
        disk = self._logs.disk_of(partition)
        secret = self._environment.entropy(16)
        job = Compaction(disk, plan, self._settings.limits, secret, self._clock().wall_ms)
        abort = self._running[partition] = asyncio.Event()
        try:
            if await self._run(job, abort, threads):
                self._logs.set_cleaned_to(partition, job.cleaned_to)
                self._count(job)
            else:
                self.stats.aborted += 1
        except DiskFullError:
            self.stats.aborted += 1
            _abandon(job)
            await self._environment.sleep(self._settings.backoff_ms / 1000)
        except (DiskError, ProtocolError, CorruptIndexError, SegmentOverflowError) as error:
            _abandon(job)
            if not (abort.is_set() and isinstance(error, DiskMissingError)):
                self.stats.uncleanable.add(partition)
                self._logs.compaction_failed(partition, error)
        finally:
            abort.set()
            del self._running[partition]

    async def _run(self, job: Compaction, abort: asyncio.Event, threads: Threads) -> bool:
        """Run a compaction to its end; False if it was given up."""
        steps = job.steps()
        while not abort.is_set():
            match await threads.run(partial(self._work_on, job, steps, abort)):
                case None:
                    return not abort.is_set()
                case Worked(io_bytes):
                    await self._pause(io_bytes, job, abort, threads)
                case Swap(replacement):
                    if abort.is_set() or not self._logs.swap(job.plan.log, replacement):
                        break
                    await threads.run(partial(job.disk.sync_directory, replacement.directory))
        await threads.run(job.abandon)
        return False

    def _work_on(
        self, job: Compaction, steps: Iterator[CompactionStep], abort: asyncio.Event
    ) -> CompactionStep | None:
        """Work in a thread up to the next swap or pause, or the end."""
        for step in steps:
            if isinstance(step, Swap):
                return step
            if abort.is_set():
                job.abandon()
                return None
            if self._throttle is not None:
                return step
        return None

    async def _pause(
        self, io_bytes: int, job: Compaction, abort: asyncio.Event, threads: Threads
    ) -> None:
        """Wait for what was read and written, unless the compaction is given up meanwhile."""
        seconds = 0.0 if self._throttle is None else self._throttle.spend(io_bytes, self._clock())
        if seconds > 0:
            try:
                await self._environment.sleep(seconds, abort)
            except asyncio.CancelledError:
                threads.start(partial(_abandon, job))
                raise

    def _count(self, job: Compaction) -> None:
        stats = self.stats
        stats.compactions += 1
        stats.bytes_read += job.collected_bytes + job.stats.bytes_read
        stats.bytes_written += job.stats.bytes_written
        stats.records_read += job.stats.records_read
        stats.records_kept += job.stats.records_kept
        stats.keys_used_last = job.keys_used


def _abandon(job: Compaction) -> None:
    # The next attempt removes what is left; on a broken disk nothing can.
    with suppress(DiskError):
        job.abandon()
