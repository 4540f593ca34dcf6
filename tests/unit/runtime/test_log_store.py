"""The logs of a broker, driven on an event loop over real files."""

import asyncio
import functools
import os
import shutil
import threading

import pytest

from moldau.kernel.disk import DiskFailedError
from moldau.kernel.ids import Offset, TopicPartition
from moldau.log.config import Durability, LogConfig
from moldau.log.errors import CorruptLogError, PartitionOfflineError, StorageFullError
from moldau.log.extents import Isolation
from moldau.runtime.cleaner import CleanerSettings
from moldau.runtime.disk import FileDisk
from moldau.runtime.free_space import Space, Thresholds
from moldau.runtime.log_store import LogStore, StoreSettings
from moldau.runtime.open_files import Descriptor
from moldau.simulation.laws.log import check_log
from tests.stores import TOPIC_ID, Broker, add, append, batch_of, open_store

P = [TopicPartition("t", number) for number in range(4)]
SMALL = LogConfig(segment_bytes=2000, index_interval_bytes=200, file_delete_delay_ms=0)
QUICK = StoreSettings(
    retention_check_interval_ms=5, removal_interval_ms=5, cleaner=CleanerSettings(backoff_ms=5)
)
CLOSED = ".kafka_cleanshutdown"


def scenario(function):
    """Run an async test."""

    @functools.wraps(function)
    def test(*arguments, **options):
        asyncio.run(function(*arguments, **options))

    return test


def values(store: LogStore, partition: TopicPartition) -> bytes:
    log = store.get(partition)
    place = store.place_of(partition)
    found = b""
    for segment in log.segments:
        found += place.waiting.read(segment.path, 0, segment.size)
    return found


@scenario
async def test_what_was_stored_is_there_after_a_good_ending(tmp_path):
    broker = Broker()
    async with open_store([tmp_path], broker, SMALL) as store:
        for partition in P:
            await store.create(partition, TOPIC_ID, SMALL)
        for number in range(20):
            await add(store, broker, P[number % 4], b"value %d" % number)
        before = [values(store, partition) for partition in P]
    assert (tmp_path / CLOSED).exists()
    async with open_store([tmp_path], broker, SMALL) as store:
        assert not (tmp_path / CLOSED).exists()
        assert [values(store, partition) for partition in P] == before
        assert [store.get(partition).high_watermark for partition in P] == [5] * 4
    assert broker.notices == []


@pytest.mark.parametrize("durability", list(Durability))
def test_every_durability_takes_and_shows_records(tmp_path, durability):
    async def run():
        broker = Broker()
        async with open_store([tmp_path], broker, durability=durability) as store:
            await store.create(P[0], TOPIC_ID, SMALL)
            await add(store, broker, P[0], b"a", b"b")
            log = store.get(P[0])
            read = log.read(0, bytes_max=999, isolation=Isolation.HIGH_WATERMARK)
            assert read.extent is not None
            assert read.high_watermark == 2
            assert (log.recovery_point == 2) == (durability is Durability.FSYNC)

    asyncio.run(run())
    assert (tmp_path / CLOSED).exists() == (durability is not Durability.MEMORY)


@scenario
async def test_after_a_crash_everything_acknowledged_is_there(tmp_path):
    broker = Broker()
    async with open_store([tmp_path], broker, SMALL, is_crash=True) as store:
        await store.create(P[0], TOPIC_ID, SMALL)
        for number in range(40):
            await add(store, broker, P[0], b"value %d" % number)
        before = values(store, P[0])
    async with open_store([tmp_path], broker, SMALL) as store:
        assert values(store, P[0]) == before
        check_log(store.get(P[0]), store.place_of(P[0]).waiting)


@scenario
async def test_new_partitions_go_where_the_fewest_are(tmp_path):
    broker = Broker()
    roots = [tmp_path / "a", tmp_path / "b"]
    async with open_store(roots, broker) as store:
        for partition in P:
            await store.create(partition, TOPIC_ID, SMALL)
        assert [len(host.core.logs) for host in store.hosts] == [2, 2]
        await store.delete(P[0])
        await store.create(P[0], TOPIC_ID, SMALL)
        assert [len(host.core.logs) for host in store.hosts] == [2, 2]


@pytest.mark.parametrize("is_open", [False, True])
@scenario
async def test_a_failed_sync_takes_its_directory_offline_and_no_other(tmp_path, is_open):
    broker = Broker()
    roots = [tmp_path / "a", tmp_path / "b"]
    async with open_store(roots, broker) as store:
        for partition in P:
            await store.create(partition, TOPIC_ID, SMALL)
            await add(store, broker, partition, b"before")
        bad = store.place_of(P[0])
        good = next(p for p in P if store.place_of(p) is not bad)
        attempts = []

        def fail(path: str) -> None:
            attempts.append(path)
            raise DiskFailedError(path, "sync failed: EIO")

        def find_open(paths):
            if not is_open:  # a thread opens them
                return None
            attempts.extend(paths)
            read, write = map(Descriptor, os.pipe())
            return [write, read][: len(paths)]  # what cannot be synced: EINVAL

        bad.disk.find_open = find_open
        bad.waiting.sync = fail
        append(store, P[0], batch_of(b"lost"))
        store.write()
        await broker.until(lambda: broker.failed)
        assert broker.failed[0][0] == bad.root
        assert P[0] in broker.failed[0][1]
        assert store.get(good).high_watermark == 1
        with pytest.raises(PartitionOfflineError, match=r"sync failed: (EIO|Invalid argument)"):
            append(store, P[0], batch_of(b"refused"))
        await add(store, broker, good, b"goes on")
        bad.tick()
        assert len(attempts) == 1
        await store.create(TopicPartition("new", 0), TOPIC_ID, SMALL)
        assert store.place_of(TopicPartition("new", 0)) is store.place_of(good)
    assert not (tmp_path / "a" / CLOSED).exists()
    assert (tmp_path / "b" / CLOSED).exists()


@scenario
async def test_a_broken_directory_is_left_out_at_the_start(tmp_path):
    broker = Broker()
    (tmp_path / "a").write_text("not a directory")
    async with open_store([tmp_path / "a", tmp_path / "b"], broker) as store:
        assert [host.root for host in store.hosts] == [str(tmp_path / "b")]
    assert "offline" in broker.notices[0]
    with pytest.raises(DiskFailedError, match="all log directories are offline"):
        async with open_store([tmp_path / "a"], broker):
            pass


@scenario
async def test_a_partition_in_two_directories_is_used_in_none(tmp_path):
    broker = Broker()
    roots = [tmp_path / "a", tmp_path / "b"]
    async with open_store(roots, broker) as store:
        for partition in P[:2]:
            await store.create(partition, TOPIC_ID, SMALL)
            await add(store, broker, partition, b"record")
    shutil.copytree(tmp_path / "a" / "t-0", tmp_path / "b" / "t-0")
    async with open_store(roots, broker) as store:
        with pytest.raises(PartitionOfflineError, match="move one of the two away"):
            store.get(P[0])
        assert store.get(P[1]).log_end == 1


@scenario
async def test_records_are_refused_at_the_reserve_and_taken_again_by_itself(tmp_path):
    broker = Broker()
    limits = Thresholds(low_bytes=3000, reserve_bytes=1000, slack_bytes=100)
    settings = StoreSettings(thresholds=limits)
    async with open_store([tmp_path], broker, settings=settings) as store:
        await store.create(P[0], TOPIC_ID, SMALL)
        place = store.place_of(P[0])
        for free, space in ((2000, Space.LOW), (900, Space.RESERVED)):
            place.disk.free_bytes = lambda free=free: free
            place.tick()
            assert place.space.space is space
        with pytest.raises(StorageFullError, match="900 bytes are left"):
            append(store, P[0], batch_of(b"x"))
        place.disk.free_bytes = lambda: 10_000
        place.tick()
        await add(store, broker, P[0], b"x")
    texts = [notice for notice in broker.notices if "MB are free" in notice]
    assert [text.split(";")[0].split(": ")[1] for text in texts] == [
        "the disk is filling up",
        "the disk is full",
        "there is room again",
    ]


@scenario
async def test_deleted_partitions_lose_their_files_and_free_their_name(tmp_path):
    broker = Broker()
    async with open_store([tmp_path], broker) as store:
        for _ in range(3):
            await store.create(P[0], TOPIC_ID, SMALL)
            await add(store, broker, P[0], b"x", b"y")
            await store.delete(P[0])
            assert P[0] not in store
        async with asyncio.timeout(20):
            while list(tmp_path.glob("t-0*")):
                await asyncio.sleep(0)


@scenario
async def test_a_removal_is_finished_by_the_next_start(tmp_path):
    broker = Broker()
    slow = LogConfig(file_delete_delay_ms=60_000)
    async with open_store([tmp_path], broker, slow) as store:
        await store.create(P[0], TOPIC_ID, slow)
        await add(store, broker, P[0], b"x")
        await store.delete(P[0])
    (folder,) = tmp_path.glob("t-0.*-delete")
    async with open_store([tmp_path], broker, slow):
        async with asyncio.timeout(20):
            while folder.exists():
                await asyncio.sleep(0)


@scenario
async def test_logs_are_cut_and_begun_anew(tmp_path):
    broker = Broker()
    async with open_store([tmp_path], broker, SMALL, is_crash=True) as store:
        await store.create(P[0], TOPIC_ID, SMALL)
        for number in range(30):
            await add(store, broker, P[0], b"value %d" % number)
        await store.place_of(P[0]).checkpoint(everything=True)
        await store.truncate(P[0], Offset(11))
        assert store.get(P[0]).log_end == 11
        await add(store, broker, P[0], b"other")
        assert await store.delete_records(P[0], Offset(5)) == 5
    async with open_store([tmp_path], broker, SMALL, is_crash=True) as store:
        log = store.get(P[0])
        assert (log.log_start, log.log_end) == (5, 12)
        await store.start_over(P[0], Offset(100))
        await add(store, broker, P[0], b"there")
    async with open_store([tmp_path], broker, SMALL) as store:
        log = store.get(P[0])
        assert (log.log_start, log.log_end) == (100, 101)
        check_log(log, store.place_of(P[0]).waiting)


@scenario
async def test_retention_and_removal_come_by_themselves(tmp_path):
    broker = Broker()
    config = LogConfig(segment_bytes=500, retention_bytes=1500, file_delete_delay_ms=0)
    async with open_store([tmp_path], broker, config, settings=QUICK) as store:
        await store.create(P[0], TOPIC_ID, config)
        log = store.get(P[0])
        for number in range(30):
            await add(store, broker, P[0], b"v" * 100, b"%d" % number)
        async with asyncio.timeout(20):
            while log.size > 2000 or list(tmp_path.glob("t-0/*.deleted")):
                await asyncio.sleep(0.001)
        assert log.log_start > 0
        check_log(log, store.place_of(P[0]).waiting)


@scenario
async def test_the_last_records_of_an_idle_log_expire_too(tmp_path):
    broker = Broker()
    config = LogConfig(retention_ms=10)
    async with open_store([tmp_path], broker, config, settings=QUICK) as store:
        await store.create(P[0], TOPIC_ID, config)
        log = store.get(P[0])
        await add(store, broker, P[0], b"v")
        async with asyncio.timeout(20):
            while log.log_start < log.log_end:
                await asyncio.sleep(0.001)
        assert (log.log_start, log.log_end) == (1, 1)
        check_log(log, store.place_of(P[0]).waiting)


@scenario
async def test_compaction_comes_by_itself(tmp_path):
    broker = Broker()
    config = LogConfig(
        segment_bytes=600,
        cleanup_policy=frozenset({"compact"}),
        min_cleanable_dirty_ratio=0.1,
        file_delete_delay_ms=0,
    )
    async with open_store([tmp_path], broker, config, settings=QUICK) as store:
        await store.create(P[0], TOPIC_ID, config)
        log = store.get(P[0])
        for number in range(40):
            append(store, P[0], batch_of(b"v" * 100 + b"%d" % number, key=b"k%d" % (number % 3)))
            assert not store.write()
            await broker.until(lambda end=number: log.high_watermark > end)
        async with asyncio.timeout(20):
            while log.size > 2000:
                await asyncio.sleep(0.001)
        check_log(log, store.place_of(P[0]).waiting)
        end = log.log_end
    async with open_store([tmp_path], broker, config, settings=QUICK) as store:
        assert store.get(P[0]).log_end == end
        assert store.place_of(P[0]).core.cleaned_to(P[0]) > 0


@scenario
async def test_many_partitions_share_their_commits(tmp_path):
    broker = Broker()
    async with open_store([tmp_path], broker) as store:
        partitions = [TopicPartition("many", number) for number in range(200)]
        for partition in partitions:
            await store.create(partition, TOPIC_ID, SMALL)
            append(store, partition, batch_of(b"x"))
        store.write()
        await broker.until(lambda: all(store.get(p).high_watermark for p in partitions))
        assert store.place_of(partitions[0]).pool.rounds <= 200
        assert threading.active_count() < 40


@scenario
async def test_damage_below_the_recovery_point_costs_its_partition_only(tmp_path):
    broker = Broker()
    async with open_store([tmp_path], broker, is_crash=True) as store:
        for partition in P[:2]:
            await store.create(partition, TOPIC_ID, SMALL)
            await add(store, broker, partition, b"x", b"y")
        await store.place_of(P[0]).checkpoint(everything=True)
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:-5])
    async with open_store([tmp_path], broker) as store:
        with pytest.raises(PartitionOfflineError, match="t-0 is offline"):
            store.get(P[0])
        assert store.get(P[1]).log_end == 2
        folder = await store.set_aside(P[0])
        await store.create(P[0], TOPIC_ID, SMALL)
        await add(store, broker, P[0], b"fetched again")
        assert FileDisk(tmp_path).list(folder)


@scenario
async def test_a_log_that_cannot_be_kept_costs_its_partition_only(tmp_path):
    broker = Broker()
    config = LogConfig(segment_bytes=500, retention_bytes=1500)
    async with open_store([tmp_path], broker, config, settings=QUICK) as store:
        for partition in P[:2]:
            await store.create(partition, TOPIC_ID, config)

        def fail(_now, *, up_to):
            raise CorruptLogError("t-0/x.log", 7, "the length is wrong")

        bad = store.get(P[0])
        store.place_of(P[0]).core.logs[P[0]] = Spoilt(bad, fail)
        await broker.until(lambda: broker.failed)
        assert broker.failed == [(str(tmp_path), [P[0]])]
        with pytest.raises(PartitionOfflineError, match="the length is wrong"):
            append(store, P[0], batch_of(b"x"))
        append(store, P[1], batch_of(b"goes on"))
        assert not store.write()
        await broker.until(lambda: store.get(P[1]).high_watermark == 1)
    assert not (tmp_path / CLOSED).exists()


class Spoilt:
    """A log with a method that fails."""

    def __init__(self, log, fail) -> None:
        self._log = log
        self.apply_retention = fail

    def __getattr__(self, name):
        return getattr(self._log, name)
