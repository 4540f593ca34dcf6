"""A child process of the benchmark: `fill` or `open` a log directory with many partitions.

Usage: python -m bench.idle_partitions fill|open DIRECTORY COUNT. `open` prints its resident
megabytes when all partitions are open, and then waits for its standard input to end.
"""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from moldau._native.records import Record
from moldau.kernel.clock import Instant
from moldau.kernel.ids import LeaderEpoch, TopicId, TopicPartition
from moldau.log.config import LogConfig
from moldau.log.errors import AppendError
from moldau.log.identity import MetaProperties
from moldau.log.partition import PartitionLog
from moldau.log.state import Notice
from moldau.records.batch import build_batch, validate
from moldau.runtime.log_opening import OpenContext
from moldau.runtime.log_store import LogStore
from moldau.runtime.machine import MachineEnvironment

TOPIC_ID = TopicId(bytes(range(16)))


class Listener:
    """Hears, and does nothing."""

    def lost(self, partition: TopicPartition, error: AppendError) -> None:
        raise AssertionError(partition) from error

    def note_durable(self, _: TopicPartition, log: PartitionLog) -> None:
        log.advance_high_watermark(log.durable_offset)

    def moved(self, partition: TopicPartition, _: PartitionLog) -> None:
        raise SystemExit(f"{partition} was moved")

    def offline(self, root: str, _: Sequence[TopicPartition], error: Exception) -> None:
        raise SystemExit(f"{root}: {error}")

    def notice(self, root: str, notice: Notice) -> None:
        raise SystemExit(f"{root}: {notice}")


async def open_store(directory: str) -> LogStore:
    listener = Listener()
    context = OpenContext(
        environment=MachineEnvironment(),
        identity=MetaProperties("bench", 1),
        config_of=lambda _: LogConfig(),
        notice=listener.notice,
    )
    return await LogStore.open([directory], context, listener)


async def fill(directory: str, count: int) -> None:
    store = await open_store(directory)
    for number in range(count):
        partition = TopicPartition("idle", number)
        await store.create(partition, TOPIC_ID, LogConfig())
        data = bytearray(build_batch([Record(0, 0, b"key", b"v" * 100)]))
        log, now = store.get(partition), Instant(time.monotonic(), time.time_ns() // 1_000_000)
        store.stage(partition, log, len(data), now)
        log.append(data, validate(data), leader_epoch=LeaderEpoch(0), now=now)
        if number % 500 == 499:
            assert not store.write()
    assert await store.close()


async def open_idle(directory: str, count: int) -> None:
    store = await open_store(directory)
    assert len(store.hosts[0].core.logs) == count
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    print(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, flush=True)
    sys.stdin.read()
    assert await store.close()


if __name__ == "__main__":
    work = {"fill": fill, "open": open_idle}[sys.argv[1]]
    asyncio.run(work(sys.argv[2], int(sys.argv[3])))
