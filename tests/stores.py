"""A log store for tests, with the broker's part played."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from moldau._native.records import Record
from moldau.kernel.clock import Instant
from moldau.kernel.ids import LeaderEpoch, TopicId, TopicPartition
from moldau.log.appender import Appended
from moldau.log.config import LogConfig
from moldau.log.errors import AppendError
from moldau.log.identity import MetaProperties
from moldau.log.partition import PartitionLog
from moldau.log.state import Notice
from moldau.records.batch import build_batch, validate
from moldau.runtime.log_opening import OpenContext
from moldau.runtime.log_store import LogStore, StoreSettings
from moldau.runtime.machine import MachineEnvironment

DEADLINE_SECONDS = 20
TOPIC_ID = TopicId(bytes(range(16)))
IDENTITY = MetaProperties("a cluster", 1)


def now() -> Instant:
    return Instant(time.monotonic(), time.time_ns() // 1_000_000)


@dataclass
class Broker:
    """What a broker would do with its logs: a single replica's watermark follows its log."""

    notices: list[str] = field(default_factory=list)
    failed: list[tuple[str, Sequence[TopicPartition]]] = field(default_factory=list)
    losses: list[tuple[TopicPartition, AppendError]] = field(default_factory=list)
    moves: list[tuple[TopicPartition, PartitionLog]] = field(default_factory=list)
    happened: asyncio.Event = field(default_factory=asyncio.Event)

    def note_durable(self, _: TopicPartition, log: PartitionLog) -> None:
        log.advance_high_watermark(log.durable_offset)
        self.happened.set()

    def lost(self, partition: TopicPartition, error: AppendError) -> None:
        self.losses.append((partition, error))
        self.happened.set()

    def moved(self, partition: TopicPartition, log: PartitionLog) -> None:
        self.moves.append((partition, log))
        self.happened.set()

    def offline(self, root: str, partitions: Sequence[TopicPartition], _: Exception) -> None:
        self.failed.append((root, partitions))
        self.happened.set()

    def notice(self, _: str, notice: Notice) -> None:
        self.notices.append(str(notice))

    async def until(self, condition) -> None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not condition():
                self.happened.clear()
                await self.happened.wait()


def make_context(broker: Broker, config: LogConfig | None = None, **options) -> OpenContext:
    return OpenContext(
        environment=options.pop("environment", None) or MachineEnvironment(),
        identity=options.pop("identity", IDENTITY),
        config_of=options.pop("config_of", lambda _: config or LogConfig()),
        notice=broker.notice,
        **options,
    )


@asynccontextmanager
async def open_store(
    roots: Sequence[object],
    broker: Broker,
    config: LogConfig | None = None,
    *,
    settings: StoreSettings | None = None,
    is_crash: bool = False,
    **options,
) -> AsyncIterator[LogStore]:
    """Open a store, and close it in good order, or not."""
    context = make_context(broker, config, **options)
    store = await LogStore.open([str(root) for root in roots], context, broker, settings)
    chores = asyncio.create_task(store.run())
    try:
        yield store
    finally:
        chores.cancel()
        await asyncio.gather(chores, return_exceptions=True)
        if is_crash:
            for host in store.hosts:
                abandon(host)
        else:
            await store.close()


def abandon(host) -> None:
    """Leave a directory as a killed process would, but for what the system still writes."""
    host.pool.close()
    host._threads.close()
    host._opened.lock.release()


def batch_of(*values: bytes, key: bytes | None = None, **fields) -> bytearray:
    timestamp = fields.pop("timestamp", now().wall_ms)
    records = [Record(n, timestamp, key, value) for n, value in enumerate(values)]
    return bytearray(build_batch(records, **fields))


def append(store: LogStore, partition: TopicPartition, data: bytearray, **options) -> Appended:
    """Append as a replica does."""
    log, moment = store.get(partition), options.pop("now", now())
    epoch = options.pop("leader_epoch", LeaderEpoch(0))
    store.stage(partition, log, len(data), moment)
    return log.append(data, validate(data), leader_epoch=epoch, now=moment, **options)


async def add(
    store: LogStore, broker: Broker, partition: TopicPartition, *values: bytes
) -> Appended:
    """Append a batch and wait until it is acknowledged."""
    appended = append(store, partition, batch_of(*values))
    failures = store.write()
    if failures:
        raise failures[partition]
    log = store.get(partition)
    await broker.until(lambda: log.high_watermark > appended.last_offset or broker.failed)
    return appended
