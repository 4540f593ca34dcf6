"""Logs on a device that fails to sync, and on a volume that is full."""

import asyncio
import gc
from functools import partial
from pathlib import Path

import pytest

from moldau._native.records import read_batches
from moldau.kernel.ids import TopicPartition
from moldau.log.config import LogConfig
from moldau.log.errors import PartitionOfflineError, StorageFullError
from moldau.log.extents import Isolation
from moldau.records.batch import read_records
from moldau.runtime.free_space import Thresholds
from moldau.runtime.log_store import LogStore, StoreSettings
from moldau.simulation.laws.log import check_log
from tests.integration.faults import FailingVolume, SmallVolume
from tests.stores import DEADLINE_SECONDS, TOPIC_ID, Broker, add, append, batch_of, open_store

P, Q = TopicPartition("t", 0), TopicPartition("t", 1)
CONFIG = LogConfig(segment_bytes=1 << 20)
VALUE = b"v" * 50_000

pytestmark = pytest.mark.alone


async def values(store: LogStore, partition: TopicPartition) -> list[bytes]:
    """Read everything that a consumer sees."""
    log = store.get(partition)
    place = store.place_of(partition)
    found: list[bytes] = []
    offset = log.log_start
    while offset < log.high_watermark:
        look = partial(log.read, offset, bytes_max=1 << 20, isolation=Isolation.HIGH_WATERMARK)
        data = place.waiting.read(*(await place.warmed(look)).extent)
        for batch in read_batches(data):
            found += [record.value for record in read_records(data, batch)]
            offset = batch.last_offset + 1
    return found


def test_a_device_that_fails_costs_its_directory_and_nothing_acknowledged(tmp_path: Path) -> None:
    with FailingVolume(tmp_path) as volume:
        acknowledged = asyncio.run(
            write_until_the_device_fails([volume.path / "a", tmp_path / "b"])
        )
        gc.collect()
        volume.repair()
        asyncio.run(check_both([volume.path / "a", tmp_path / "b"], acknowledged))
        gc.collect()


async def write_until_the_device_fails(roots: list[Path]) -> dict[TopicPartition, list[bytes]]:
    broker = Broker()
    acknowledged: dict[TopicPartition, list[bytes]] = {P: [], Q: []}
    async with open_store(roots, broker) as store:
        for partition in (P, Q):
            await store.create(partition, TOPIC_ID, CONFIG)
        assert store.place_of(P).root == str(roots[0])
        for number in range(1000):
            value = b"%d" % number + VALUE
            try:
                appended = await add(store, broker, P, value)
            except PartitionOfflineError:
                break
            if broker.failed and store.hosts[0].core.logs[P].high_watermark <= appended.base_offset:
                break
            acknowledged[P].append(value)
        assert broker.failed == [(str(roots[0]), [P])]
        # An append may meet the failure before the sync that ran into it ends, which tells nothing
        # more then.
        async with asyncio.timeout(DEADLINE_SECONDS):
            while store.hosts[0].pool.is_busy:
                await asyncio.sleep(0.001)
        commits = store.hosts[0].pool.rounds
        for number in range(20):
            store.hosts[0].tick()
            with pytest.raises(PartitionOfflineError, match="sync failed"):
                append(store, P, batch_of(VALUE))
            value = b"after %d" % number
            await add_beside(store, broker, value)
            acknowledged[Q].append(value)
        assert store.hosts[0].pool.rounds == commits, "a failed sync must not be tried again"
    (line,) = [notice for notice in broker.notices if "offline" in notice]
    assert "sync failed" in line
    return acknowledged


async def add_beside(store: LogStore, broker: Broker, value: bytes) -> None:
    """Append to the other directory, whatever has failed."""
    appended = append(store, Q, batch_of(value))
    assert not store.write()
    await broker.until(lambda: store.get(Q).high_watermark > appended.last_offset)


async def check_both(roots: list[Path], acknowledged: dict[TopicPartition, list[bytes]]) -> None:
    broker = Broker()
    async with open_store(roots, broker) as store:
        for partition, expected in acknowledged.items():
            log = store.get(partition)
            log.advance_high_watermark(log.durable_offset)
            assert (await values(store, partition))[: len(expected)] == expected


async def fill(store: LogStore, broker: Broker, acknowledged: list[bytes]) -> str:
    """Append until that is refused; return the reason."""
    while True:
        value = b"%d" % len(acknowledged) + VALUE
        try:
            await add(store, broker, P, value)
        except StorageFullError as error:
            return str(error)
        acknowledged.append(value)


@pytest.mark.parametrize(
    "thresholds", [None, Thresholds(low_bytes=1, reserve_bytes=1, slack_bytes=0)]
)
def test_a_full_volume_refuses_records_and_resumes(tmp_path: Path, thresholds) -> None:
    """With a reserve, and without one: then the system itself has no room."""

    async def run(root: Path) -> None:
        broker = Broker()
        ballast = root.parent / "ballast"
        ballast.write_bytes(bytes(1 << 20))
        settings = StoreSettings(thresholds=thresholds)
        acknowledged: list[bytes] = []
        async with open_store([root], broker, settings=settings) as store:
            await store.create(P, TOPIC_ID, CONFIG)
            refused = await fill(store, broker, acknowledged)
            assert "is full" in refused or "No space left" in refused
            assert await values(store, P) == acknowledged
            check_log(store.get(P), store.place_of(P).waiting)
            with pytest.raises(StorageFullError):
                await add(store, broker, P, VALUE)
            ballast.unlink()
            async with asyncio.timeout(20):
                while True:  # it notices by itself
                    try:
                        await add(store, broker, P, b"there is room")
                        break
                    except StorageFullError:
                        await asyncio.sleep(0.05)
            acknowledged.append(b"there is room")
            assert await values(store, P) == acknowledged
        spoken = [notice for notice in broker.notices if "MB are free" in notice]
        assert "the disk is " in spoken[0]
        # Closing writes as well, and may find the system still busy with what was removed.
        assert any("there is room again" in notice for notice in spoken)
        async with open_store([root], broker) as store:
            assert await values(store, P) == acknowledged
            check_log(store.get(P), store.place_of(P).waiting)

    with SmallVolume(tmp_path, size_mb=6) as volume:
        asyncio.run(run(volume.path / "log"))
        gc.collect()
