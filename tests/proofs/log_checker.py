"""A process that opens what a crash has left, and checks it against what was acknowledged.

Usage: log_checker.py ACKNOWLEDGED kill|power crash|close DIRECTORY... It ends in the way that it is
told, so that the next start is of either kind.
"""

import asyncio
import hashlib
import os
import sys
from collections import defaultdict
from pathlib import Path

from moldau._native.records import read_batches
from moldau.kernel.disk import Disk
from moldau.kernel.ids import TopicPartition
from moldau.log.partition import PartitionLog
from moldau.records.batch import read_records
from moldau.runtime.log_store import LogStore
from moldau.simulation.laws.log import check_log, check_producers, stored_batches
from tests.proofs.log_workload import CONFIGS, SEGMENT_BYTES
from tests.stores import Broker, make_context


class Acknowledged:
    """What the writers said, by partition and first offset."""

    def __init__(self, path: Path) -> None:
        self.batches: dict[TopicPartition, dict[int, tuple[int, str, list[str]]]] = defaultdict(
            dict
        )
        for line in path.read_text().splitlines():
            _, topic, number, first, last, digest, *pairs = line.split(" ")
            batches = self.batches[TopicPartition(topic, int(number))]
            assert int(first) not in batches, f"offset {first} was acknowledged twice: {line}"
            batches[int(first)] = int(last), digest, pairs


def check(store: LogStore, acknowledged: Acknowledged, *, is_power_loss: bool) -> int:
    """Check all partitions; return how many batches were compared.

    Of what was written a power loss takes away what was not synced; a killed process loses nothing
    that the system has.
    """
    count = 0
    for partition, batches in acknowledged.batches.items():
        log = store.get(partition)
        disk = store.place_of(partition).waiting
        log.advance_high_watermark(log.durable_offset)
        _warm(log, disk)
        try:
            check_log(log, disk)
        except Exception as error:
            raise AssertionError(f"{partition}: {error}") from error
        stored = {b.base_offset: (b, data) for _, b, data in stored_batches(log, disk)}
        assert log.log_end > max(last for last, _, _ in batches.values()), f"{partition} is shorter"
        if partition.topic == "keyed":
            _check_keys(partition, batches, stored)
        else:
            _check_bytes(partition, log.log_start, batches, stored)
        if partition.topic == "plain":
            assert log.log_start == 0
            check_producers(log, disk)
        elif log.log_start and not is_power_loss:
            # Retention takes a segment only when as much as it may keep is left without it.
            assert log.size >= 4 * SEGMENT_BYTES, f"{partition}: only {log.size} bytes are left"
        count += len(batches)
    return count


def _warm(log: PartitionLog, disk: Disk) -> None:
    """Have everything in memory: the laws read as the event loop does."""
    for name in disk.list(log.directory):
        disk.read(f"{log.directory}/{name}", 0, 1 << 30)


def _check_bytes(partition, log_start, batches, stored) -> None:
    for first, (last, digest, _) in batches.items():
        if last < log_start:
            continue
        assert first in stored, (
            f"{partition}: offset {first} is lost, the log starts at {log_start}"
        )
        batch, data = stored[first]
        assert batch.last_offset == last, f"{partition}: offset {first} ends elsewhere"
        found = hashlib.blake2b(data, digest_size=8).hexdigest()
        assert found == digest, f"{partition}: offset {first} has other bytes"


def _check_keys(partition, batches, stored) -> None:
    """The last acknowledged value of a key is there, or a later one that was not acknowledged."""
    latest: dict[str, tuple[int, str]] = {}
    for _, data in stored.values():
        (batch,) = read_batches(data)
        for record in read_records(data, batch):
            key, value = record.key.decode(), record.value.decode().rstrip(".")
            latest[key] = max(latest.get(key, (-1, "")), (record.offset, value))
    for first, (_, _, pairs) in batches.items():
        for number, pair in enumerate(pairs):
            key, value = pair.split("=")
            offset, found = latest[key]
            assert offset >= first + number, f"{partition}: {key} of offset {first} is lost"
            assert offset > first + number or found == value, f"{partition}: {key} has changed"


async def main(path: Path, crash: str, ending: str, roots: list[str]) -> None:
    """Open, check, end."""
    broker = Broker()
    context = make_context(broker, config_of=lambda topic: CONFIGS[topic])
    store = await LogStore.open(roots, context, broker)
    closed = [host.core.closed for host in store.hosts if host.core.closed]
    assert not closed, f"partitions were given up: {closed}"
    count = check(store, Acknowledged(path), is_power_loss=crash == "power")
    sys.stdout.write("\n".join([str(count), *broker.notices, ""]))
    sys.stdout.flush()
    if ending == "crash":
        os._exit(0)
    assert await store.close(), broker.notices


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]))
