"""What is done for all logs from time to time: retention, removal, expiry, ticks."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from moldau.kernel.ids import TopicPartition
from moldau.log.errors import AppendError, PartitionOfflineError
from moldau.log.partition import PartitionLog
from moldau.runtime.directory_host import DirectoryHost
from moldau.runtime.environment import NodeEnvironment

TICK_SECONDS: Final = 1.0
SLICE_PARTITIONS: Final = 64
"""How many partitions a chore looks at before others have their turn on the loop."""

Chore = Callable[[DirectoryHost, TopicPartition, PartitionLog], Coroutine[Any, Any, None]]


class ChoreSettings(Protocol):
    """How often, and what is too old."""

    @property
    def retention_check_interval_ms(self) -> int:
        """Between two looks at what retention takes."""

    @property
    def removal_interval_ms(self) -> int:
        """Between two looks at files that nobody reads any more."""

    @property
    def producer_expiration_check_interval_ms(self) -> int:
        """Between two looks at producers."""

    @property
    def producer_id_expiration_ms(self) -> int:
        """How long a silent producer is known."""


class ChoredLogs(Protocol):
    """Where the logs are, and what else is done with them."""

    @property
    def hosts(self) -> Sequence[DirectoryHost]:
        """All log directories."""

    @property
    def settings(self) -> ChoreSettings:
        """What counts now."""

    @property
    def places(self) -> Mapping[TopicPartition, DirectoryHost]:
        """The directory of each partition."""

    def is_staged(self, partition: TopicPartition) -> bool:
        """Whether something waits for the turn's write."""

    def is_compacting(self, partition: TopicPartition) -> bool:
        """Whether the segments are being read."""

    def changed(self, partition: TopicPartition) -> None:
        """Have a log synced."""


class LogChores:
    """Walks over all logs, in slices."""

    def __init__(self, logs: ChoredLogs, environment: NodeEnvironment) -> None:
        self._logs = logs
        self._clock = environment.now
        self._sleep = environment.sleep

    async def run(self) -> None:
        """Work until cancelled."""
        settings = self._logs.settings
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tick())
            for interval_ms, chore in (
                (settings.retention_check_interval_ms, self._apply_retention),
                (settings.removal_interval_ms, self._remove_files),
                (settings.producer_expiration_check_interval_ms, self._expire_producers),
            ):
                group.create_task(self._repeat(interval_ms, chore))

    async def do_all(self) -> None:
        """Do everything once, now."""
        self._tick_once()
        # Retention twice: a segment can go when the one behind it is durable, which it may make.
        for chore in (
            self._apply_retention,
            self._apply_retention,
            self._remove_files,
            self._expire_producers,
        ):
            for host in self._logs.hosts:
                await host.settle()
            await self._sweep(chore)

    async def _tick(self) -> None:
        while True:
            await self._sleep(TICK_SECONDS)
            self._tick_once()

    def _tick_once(self) -> None:
        for host in self._logs.hosts:
            with suppress(PartitionOfflineError):
                host.tick()

    async def _repeat(self, interval_ms: int, chore: Chore) -> None:
        while True:
            await self._sleep(interval_ms / 1000)
            await self._sweep(chore)

    async def _sweep(self, chore: Chore) -> None:
        for number, (partition, host) in enumerate(list(self._logs.places.items())):
            log = host.core.logs.get(partition)
            if log is not None and host.is_online and not self._logs.is_staged(partition):
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
        if self._logs.is_compacting(partition):
            return  # it reads the segments; the next time will do
        now = self._clock()
        up_to = host.core.removable_to(partition)
        removed = await host.warmed(lambda: log.apply_retention(now, up_to=up_to))
        if removed or log.is_sync_due(now):
            # Not only what is gone: the last segment of an idle log goes when a new one is durable.
            self._logs.changed(partition)

    async def _expire_producers(
        self, _host: DirectoryHost, _: TopicPartition, log: PartitionLog
    ) -> None:
        log.expire_producers(self._clock(), self._logs.settings.producer_id_expiration_ms)

    async def _remove_files(
        self, host: DirectoryHost, _: TopicPartition, log: PartitionLog
    ) -> None:
        await host.remove(log.take_removable(self._clock()))
