"""A child process that writes through a log store and says what was acknowledged, until killed.

Usage: log_writer.py SEED DIRECTORY... Each line of its output is an acknowledged batch: its
directory, partition, first and last offset, a digest of its bytes as they are stored, and its
records as `key=value` or `=value`.
"""

import asyncio
import hashlib
import random
import sys
from contextlib import suppress
from dataclasses import dataclass

from moldau._native.records import Record
from moldau.kernel.ids import LeaderEpoch, TopicPartition
from moldau.log.errors import AppendError
from moldau.log.partition import PartitionLog
from moldau.records.batch import build_batch
from moldau.runtime.cleaner import CleanerSettings
from moldau.runtime.log_store import LogStore, StoreSettings
from tests.proofs.log_workload import CONFIGS, KEYS, PARTITIONS
from tests.stores import TOPIC_ID, Broker, append, make_context, now

SETTINGS = StoreSettings(
    retention_check_interval_ms=20,
    removal_interval_ms=20,
    cleaner=CleanerSettings(backoff_ms=20),
)
AHEAD_MAX = 40


@dataclass
class Sent:
    """A batch that waits to be acknowledged."""

    first: int
    last: int
    line: str


class Writer(Broker):
    """Writes batches of all kinds to all partitions."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = random.Random(seed)
        self._seed = seed
        self._count = 0
        self._sequences: dict[TopicPartition, int] = {}
        self._sent: dict[TopicPartition, list[Sent]] = {p: [] for p in PARTITIONS}

    def note_durable(self, partition: TopicPartition, log: PartitionLog) -> None:
        super().note_durable(partition, log)
        sent = self._sent[partition]
        while sent and sent[0].last < log.high_watermark:
            _say(sent.pop(0).line)

    def notice(self, root: str, notice: object) -> None:
        sys.stderr.write(f"{root}: {notice}\n")

    async def run(self, roots: list[str]) -> None:
        context = make_context(self, config_of=lambda topic: CONFIGS[topic])
        _say("opening\n")
        store = await LogStore.open(roots, context, self, SETTINGS)
        _say("open\n")
        async with asyncio.TaskGroup() as group:
            group.create_task(store.run())
            group.create_task(self._write(store))

    async def _write(self, store: LogStore) -> None:
        for partition in PARTITIONS:
            if partition not in store:
                await store.create(partition, TOPIC_ID, CONFIGS[partition.topic])
        while len(self.failed) < len(store.hosts):
            for _ in range(self._random.randint(1, 5)):
                with suppress(AppendError):  # a directory that has failed
                    self._append(store, self._random.choice(PARTITIONS))
            for partition in store.write():
                self._sent[partition].clear()
            await asyncio.sleep(0)
            if self._ahead() > AHEAD_MAX:
                await self.until(lambda: self._ahead() <= AHEAD_MAX)
        sys.exit(3)

    def _ahead(self) -> int:
        offline = {partition for _, partitions in self.failed for partition in partitions}
        return sum(len(sent) for p, sent in self._sent.items() if p not in offline)

    def _append(self, store: LogStore, partition: TopicPartition) -> None:
        records = []
        for number in range(self._random.randint(1, 4)):
            self._count += 1
            key = self._random.choice(KEYS) if partition.topic == "keyed" else None
            value = b"%d.%d" % (self._seed, self._count) + b"." * self._random.randint(0, 900)
            records.append(Record(number, now().wall_ms, key, value))
        data = bytearray(build_batch(records, **self._producer(partition, len(records))))
        appended = append(store, partition, data, leader_epoch=LeaderEpoch(self._seed))
        digest = hashlib.blake2b(data, digest_size=8).hexdigest()
        pairs = " ".join(
            f"{(record.key or b'').decode()}={(record.value or b'').decode().rstrip('.')}"
            for record in records
        )
        place = store.place_of(partition).root
        first, last = appended.base_offset, appended.last_offset
        line = f"{place} {partition.topic} {partition.partition} {first} {last} {digest} {pairs}\n"
        self._sent[partition].append(Sent(first, last, line))

    def _producer(self, partition: TopicPartition, count: int) -> dict[str, int]:
        """Let every other batch be of an idempotent producer, one per process."""
        if self._random.random() < 0.5:
            return {}
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = sequence + count
        return {"producer_id": self._seed, "producer_epoch": 0, "base_sequence": sequence}


def _say(line: str) -> None:
    sys.stdout.write(line)
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(Writer(int(sys.argv[1])).run(sys.argv[2:]))
