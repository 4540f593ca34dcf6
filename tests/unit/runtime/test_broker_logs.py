"""The broker's port to its logs, over real files."""

import asyncio
import errno
import os

import pytest

from moldau._native.files import FileRegion, is_resident, tells_residency
from moldau._native.records import check_batches
from moldau.broker.ports import LoadedPieces, Piece, SendablePieces
from moldau.kernel.disk import DiskColdError
from moldau.kernel.ids import Offset, TopicPartition
from moldau.log.config import Durability, LogConfig
from moldau.log.extents import Extent, Isolation
from moldau.runtime.broker_logs import BrokerLogs
from moldau.runtime.buffer_pool import SMALL_BYTES, BufferPool
from tests.stores import TOPIC_ID, Broker, add, open_store
from tests.unit.runtime.test_log_store import scenario

P = [TopicPartition("t", number) for number in range(2)]
VALUE = b"x" * 20_000


class Cold:
    """Files of which nothing is in memory, as `preadv` with RWF_NOWAIT tells."""

    def __init__(self, monkeypatch, *, partly: int = 0) -> None:
        self._preadv = os.preadv
        self.partly = partly
        self.waited = 0
        monkeypatch.setattr(os, "preadv", self)

    def __call__(self, fd: int, buffers, position: int, flags: int = 0) -> int:
        if not flags:
            self.waited += 1
            return self._preadv(fd, buffers, position)
        if not self.partly:
            raise BlockingIOError
        count, self.partly = self.partly, 0
        return self._preadv(fd, [buffers[0][:count]], position)


def piece(store, partition: TopicPartition, offset: int = 0) -> Piece:
    read = store.get(partition).read(
        Offset(offset), bytes_max=1 << 20, isolation=Isolation.HIGH_WATERMARK
    )
    return Piece(partition, read.extent)


async def load(reader: BrokerLogs, *pieces: Piece) -> LoadedPieces:
    done: asyncio.Future[LoadedPieces] = asyncio.get_running_loop().create_future()
    reader.load(pieces, done.set_result)
    return await asyncio.wait_for(done, 10)


def offsets(content) -> list[int]:
    return [batch.base_offset for batch, _ in check_batches(bytes(content))]


def filled(durability=Durability.PAGE_CACHE, config=None):
    """Run a test with a store of two partitions."""

    def decorate(function):
        async def test(tmp_path, monkeypatch):
            broker = Broker()
            async with open_store([tmp_path], broker, config, durability=durability) as store:
                for partition in P:
                    await store.create(partition, TOPIC_ID, config or LogConfig())
                    for _ in range(3):
                        await add(store, broker, partition, VALUE)
                await function(store, monkeypatch)

        test.__name__ = function.__name__
        return scenario(test)

    return decorate


@filled()
async def test_what_is_in_memory_is_read_at_once(store, monkeypatch):
    loaded = []
    BrokerLogs(store, lambda: None).load([piece(store, P[0]), piece(store, P[1], 2)], loaded.append)
    assert [offsets(content) for content in loaded[0].contents] == [[0, 1, 2], [2]]


@filled(Durability.MEMORY)
async def test_logs_in_memory(store, monkeypatch):
    loaded = await load(BrokerLogs(store, lambda: None), piece(store, P[0]))
    assert offsets(loaded.contents[0]) == [0, 1, 2]


@pytest.mark.parametrize("partly", [0, 30_000])
def test_what_is_cold_is_read_in_a_thread(partly, tmp_path, monkeypatch):
    @filled()
    async def test(store, monkeypatch):
        pieces = [piece(store, partition) for partition in P]
        cold = Cold(monkeypatch, partly=partly)
        loaded = await load(BrokerLogs(store, lambda: None), *pieces)
        assert [offsets(content) for content in loaded.contents] == [[0, 1, 2]] * 2
        assert cold.waited == 2

    test(tmp_path, monkeypatch)


@filled()
async def test_a_file_system_that_cannot_say(store, monkeypatch):
    wanted = piece(store, P[0])
    preadv, asked = os.preadv, []

    def unable(fd, buffers, position, flags=0):
        asked.append(flags)
        if flags:
            raise OSError(errno.EOPNOTSUPP, "not supported")
        return preadv(fd, buffers, position)

    monkeypatch.setattr(os, "preadv", unable)
    reader = BrokerLogs(store, lambda: None)
    for _ in range(2):
        loaded = await load(reader, wanted)
        assert offsets(loaded.contents[0]) == [0, 1, 2]
    assert [bool(flags) for flags in asked] == [True, False, False]


@filled()
async def test_a_file_may_go_while_it_is_read(store, monkeypatch):
    wanted = piece(store, P[0])
    Cold(monkeypatch)
    loaded: list[LoadedPieces] = []
    BrokerLogs(store, lambda: None).load([wanted], loaded.append)
    await store.delete(P[0])
    async with asyncio.timeout(10):
        while not loaded:
            await asyncio.sleep(0)
    assert offsets(loaded[0].contents[0]) == [0, 1, 2]


@filled()
async def test_a_file_that_is_too_short_costs_its_partition_only(store, monkeypatch):
    good, (_, extent) = piece(store, P[0]), piece(store, P[1])
    bad = Piece(P[1], Extent(extent.path, extent.position, extent.length + 1))
    loaded = await load(BrokerLogs(store, lambda: None), bad, good)
    assert loaded.contents[0] is None
    assert offsets(loaded.contents[1]) == [0, 1, 2]
    assert [partition for partition in P if partition in store.hosts[0].core.closed] == [P[1]]


@filled()
async def test_a_failing_device_takes_the_directory_offline(store, monkeypatch):
    def fail(*_):
        raise OSError(5, "Input/output error")

    wanted = piece(store, P[0])
    monkeypatch.setattr(os, "preadv", fail)
    loaded = await load(BrokerLogs(store, lambda: None), wanted)
    assert loaded.contents == [None]
    assert not store.hosts[0].is_online


@filled()
async def test_memory_is_used_again_when_it_was_sent_and_not_before(store, monkeypatch):
    reader = BrokerLogs(store, lambda: None)
    first = await load(reader, piece(store, P[0]))
    second = await load(reader, piece(store, P[1], 1))
    assert first.contents[0].obj is not second.contents[0].obj
    memory = first.contents[0].obj
    first.release()
    third = await load(reader, piece(store, P[0]))
    assert third.contents[0].obj is memory
    assert offsets(second.contents[0]) == [1, 2]


@filled()
async def test_what_a_look_missed_is_brought_into_memory(store, monkeypatch):
    reader = BrokerLogs(store, lambda: None)
    extent = piece(store, P[0]).extent
    for partition in (P[0], TopicPartition("gone", 0)):
        warmed = asyncio.Event()
        reader.warm(partition, DiskColdError(extent.path, 0, 100), warmed.set)
        await asyncio.wait_for(warmed.wait(), 10)


@filled()
async def test_what_a_look_missed_may_have_another_name_by_now(store, monkeypatch):
    warmed = asyncio.Event()
    BrokerLogs(store, lambda: None).warm(P[0], DiskColdError("t-0/moved.log", 0, 100), warmed.set)
    await asyncio.wait_for(warmed.wait(), 10)
    assert store.get(P[0])


@filled(config=LogConfig(segment_bytes=30_000))
async def test_records_are_deleted(store, monkeypatch):
    reader = BrokerLogs(store, lambda: None)
    for partition, before, expected in (
        (P[0], 2, 2),
        (P[0], 99, None),
        (TopicPartition("gone", 0), 1, None),
    ):
        done: asyncio.Future[Offset | None] = asyncio.get_running_loop().create_future()
        reader.delete_records(partition, Offset(before), done.set_result)
        assert await asyncio.wait_for(done, 10) == expected
    assert store.get(P[0]).log_start == 2


def test_the_pool_keeps_a_bounded_number_of_bytes():
    pool = BufferPool(idle_bytes_max=200_000)
    assert len(pool.take(SMALL_BYTES)) == SMALL_BYTES
    buffers = [pool.take(100_000) for _ in range(3)]
    assert {len(buffer) for buffer in buffers} == {131072}
    for buffer in buffers:
        pool.give_back(buffer)
    assert pool.idle_bytes == 131072
    assert pool.take(70_000) is buffers[0]
    pool.give_back(bytearray(10))
    assert pool.idle_bytes == 0


async def ready(reader: BrokerLogs, *pieces: Piece) -> SendablePieces:
    done: asyncio.Future[SendablePieces] = asyncio.get_running_loop().create_future()
    reader.ready(pieces, done.set_result)
    return await asyncio.wait_for(done, 10)


def open_segment(store, wanted: Piece):
    file = store.place_of(wanted.partition).disk.descriptor(wanted.extent.path)
    if not tells_residency(file.fd):
        pytest.skip("cachestat came with Linux 6.5")
    return file


@filled()
async def test_large_pieces_stay_in_their_files(store, monkeypatch):
    pieces = [piece(store, P[0]), piece(store, P[1], 2)]
    open_segment(store, pieces[0])
    large, small = (each.extent.length for each in pieces)
    found = []
    BrokerLogs(store, lambda: None, region_bytes_min=large).ready(pieces, found.append)
    region, content = found[0].contents
    assert isinstance(region, FileRegion)
    assert (len(region), region.position) == (large, pieces[0].extent.position)
    assert offsets(os.pread(region.file.fd, len(region), region.position)) == [0, 1, 2]
    assert offsets(content) == [2]
    assert small <= found[0].memory_bytes < large


@filled()
async def test_without_regions_all_is_read(store, monkeypatch):
    found = await ready(BrokerLogs(store, lambda: None), piece(store, P[0]))
    assert offsets(found.contents[0]) == [0, 1, 2]


@filled()
async def test_large_pieces_that_are_cold_are_pulled_in_by_threads(store, monkeypatch):
    pieces = [piece(store, partition) for partition in P]
    files = [open_segment(store, each) for each in pieces]
    for file in files:
        os.fsync(file.fd)
        os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)
    found = await ready(BrokerLogs(store, lambda: None, region_bytes_min=1), *pieces)
    for file, region in zip(files, found.contents, strict=True):
        assert is_resident(file.fd, region.position, len(region))
    assert found.memory_bytes == 0


@filled()
async def test_a_region_beyond_its_file_takes_the_log_out_of_service(store, monkeypatch):
    wanted = piece(store, P[0])
    file = open_segment(store, wanted)
    os.ftruncate(file.fd, wanted.extent.length - 5000)
    found = await ready(BrokerLogs(store, lambda: None, region_bytes_min=1), wanted)
    assert found.contents == [None]
    assert [partition for partition in P if partition in store.hosts[0].core.closed] == [P[0]]
