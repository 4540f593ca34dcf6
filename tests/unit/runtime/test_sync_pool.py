import asyncio
import threading
from collections import defaultdict

import pytest

from moldau.kernel.disk import DiskError, DiskFailedError
from moldau.kernel.ids import Offset, TopicPartition
from moldau.runtime.disk import FileDisk
from moldau.runtime.group_commit import Dirty
from moldau.runtime.memory_disk import MemoryDisk
from moldau.runtime.sync_pool import SyncPool

DEADLINE = 10


class GatedDisk(MemoryDisk):
    """Syncs wait until they are let through, and may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.began = threading.Semaphore(0)
        self.synced: list[str] = []
        self.failure: Exception | None = None

    def sync(self, path: str) -> None:
        self.began.release()
        assert self.gate.wait(DEADLINE)
        if self.failure:
            raise self.failure
        super().sync(path)
        self.synced.append(path)


class Seen:
    """What a pool reported, and the pool."""

    def __init__(self, disk, **options) -> None:
        self.ends: dict[TopicPartition, Offset] = {}
        self.batches: list[int] = []
        self.failed: list[DiskError] = []
        self.changed = asyncio.Event()
        self.pool = SyncPool(
            disk,
            call_soon=asyncio.get_running_loop().call_soon_threadsafe,
            on_synced=self._synced,
            on_failed=self._failed,
            on_batch=lambda count, _seconds: self.batches.append(count),
            **options,
        )

    def _synced(self, partition, end):
        self.ends[partition] = end
        self.changed.set()

    def _failed(self, error):
        self.failed.append(error)
        self.changed.set()

    async def until(self, condition):
        async with asyncio.timeout(DEADLINE):
            while not condition():
                self.changed.clear()
                await self.changed.wait()


def dirty(number: int, end: int) -> Dirty:
    return Dirty(TopicPartition("t", number), Offset(end), [f"{number}"], [""])


def test_one_sync_at_a_time_and_the_next_takes_all():
    async def run():
        disk = GatedDisk()
        for number in range(20):
            disk.append(str(number), [b"x"])
        seen = Seen(disk)
        seen.pool.written([dirty(0, 1)])
        assert disk.began.acquire(timeout=DEADLINE)
        for number in range(20):
            seen.pool.written([dirty(number, 2)])
        assert not disk.began.acquire(timeout=0)
        disk.gate.set()
        await seen.until(lambda: len(seen.ends) == 20)
        assert seen.batches == [2, 21]
        assert set(seen.ends.values()) == {2}
        seen.pool.close()

    asyncio.run(run())


@pytest.mark.parametrize("failure", [DiskFailedError("0", "EIO"), ZeroDivisionError()])
def test_a_failure_is_reported_once_and_nothing_after(failure):
    async def run():
        disk = GatedDisk()
        disk.failure = failure
        for number in range(3):
            disk.append(str(number), [b"x"])
        disk.gate.set()
        seen = Seen(disk)
        seen.pool.written([dirty(number, 1) for number in range(3)])
        await seen.until(lambda: seen.failed)
        seen.pool.written([dirty(0, 2)])
        seen.pool.close()
        assert len(seen.failed) == 1
        assert isinstance(seen.failed[0], DiskFailedError)
        assert seen.ends == {}

    asyncio.run(run())


def test_a_file_removed_while_it_waits_is_no_failure():
    async def run():
        seen = Seen(MemoryDisk())
        seen.pool.written([dirty(0, 1)])
        await seen.until(lambda: seen.ends)
        assert not seen.failed
        seen.pool.close()

    asyncio.run(run())


def test_closing_waits_for_the_sync_and_reports_nothing():
    async def run():
        disk = GatedDisk()
        disk.append("0", [b"x"])
        seen = Seen(disk)
        seen.pool.written([dirty(0, 1)])
        assert disk.began.acquire(timeout=DEADLINE)
        threading.Timer(0, disk.gate.set).start()
        seen.pool.close()
        assert disk.synced == ["0"]
        return seen

    assert asyncio.run(run()).ends == {}


def test_many_partitions_on_real_files(tmp_path):
    async def run():
        disk = FileDisk(tmp_path, open_files_max=4)
        seen = Seen(disk, threads=3)
        wanted = defaultdict(int)
        for turn in range(10):
            for number in range(turn + 1):
                disk.append(str(number), [b"x" * 100])
                wanted[TopicPartition("t", number)] += 1
            seen.pool.written([dirty(p.partition, end) for p, end in wanted.items()])
            await asyncio.sleep(0)
        await seen.until(lambda: seen.ends == wanted)
        assert len(seen.batches) <= 10
        seen.pool.close()

    asyncio.run(run())
