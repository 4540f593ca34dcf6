import asyncio
import os
import threading
from typing import ClassVar

import pytest

from moldau.kernel.disk import DiskError, DiskFailedError
from moldau.log.sync_round import SyncRound
from moldau.runtime.disk import FileDisk
from moldau.runtime.file_syncs import FileSyncs
from moldau.runtime.machine import MachineEnvironment
from moldau.runtime.memory_disk import MemoryDisk
from moldau.runtime.open_files import Descriptor
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


class Source:
    """Numbered files, written and synced; and the pool that syncs them."""

    def __init__(self, disk, **options) -> None:
        self.written: dict[int, int] = {}
        self.ends: dict[int, int] = {}
        self.sizes: list[int] = []
        self.failed_with: list[DiskError] = []
        self.refused: list[SyncRound] = []
        self.changed = asyncio.Event()
        self.replacements: list[tuple[str, bytes]] = []
        self.names = [""]
        self._dirty: dict[int, int] = {}
        self._taken: dict[int, int] = {}
        self.pool = SyncPool(disk, self, MachineEnvironment(), **options)

    def write(self, *numbers):
        for number in numbers:
            self.written[number] = self._dirty[number] = self.written.get(number, 0) + 1
        self.pool.wake()

    def take_round(self):
        taken = {n: self._dirty.pop(n) for n in list(self._dirty) if n not in self._taken}
        if not taken:
            return None
        self._taken |= taken
        return SyncRound([str(number) for number in taken], self.replacements, self.names)

    def synced(self, sync_round):
        for path in sync_round.files:
            self.ends[int(path)] = self._taken.pop(int(path))
        self.sizes.append(len(sync_round.files))

    def announce(self, _):
        self.changed.set()

    def put_back(self, sync_round, _):
        self._dirty, self._taken = self._taken | self._dirty, {}
        self.refused.append(sync_round)
        self.changed.set()

    def failed(self, error):
        self.failed_with.append(error)
        self.changed.set()

    async def until(self, condition):
        async with asyncio.timeout(DEADLINE):
            while not condition():
                self.changed.clear()
                await self.changed.wait()


def test_one_sync_at_a_time_and_the_next_takes_all():
    async def run():
        disk = GatedDisk()
        for number in range(20):
            disk.append(str(number), [b"x"])
        source = Source(disk)
        source.write(0)
        assert disk.began.acquire(timeout=DEADLINE)
        for number in range(20):
            source.write(number)
        assert not disk.began.acquire(timeout=0)
        disk.gate.set()
        await source.until(lambda: source.ends == source.written)
        assert source.sizes == [1, 20]
        assert (source.pool.rounds, source.pool.is_busy) == (2, False)
        source.pool.close()

    asyncio.run(run())


def test_a_file_waits_for_its_own_sync_only():
    async def run():
        disk = GatedDisk()
        for number in range(3):
            disk.append(str(number), [b"x"])
        source = Source(disk, rounds_max=2)
        ended = []
        source.write(0)
        source.pool.when_ended(lambda: ended.append("first"))
        source.write(1)
        source.pool.when_ended(lambda: ended.append("both"))
        source.write(0, 2)
        for _ in range(2):
            assert disk.began.acquire(timeout=DEADLINE)
        assert not disk.began.acquire(timeout=0)
        disk.gate.set()
        await source.until(lambda: source.ends == source.written)
        assert source.sizes[:2] == [1, 1]
        assert sorted(ended) == ["both", "first"]
        source.pool.close()

    asyncio.run(run())


def test_rounds_that_hang_hold_up_nothing_that_is_let_go():
    async def run():
        disk = GatedDisk()
        disk.append("0", [b"x"])
        source = Source(disk)
        source.write(0)
        ended = []
        source.pool.when_ended(lambda: ended.append(0))
        source.pool.let_go()
        assert ended == [0]
        disk.gate.set()
        await source.until(lambda: source.ends == source.written)
        assert ended == [0]
        source.pool.close()

    asyncio.run(run())


@pytest.mark.parametrize("failure", [DiskFailedError("0", "EIO"), ZeroDivisionError()])
def test_a_failure_is_reported_once_and_nothing_after(failure):
    async def run():
        disk = GatedDisk()
        disk.failure = failure
        for number in range(3):
            disk.append(str(number), [b"x"])
        disk.gate.set()
        source = Source(disk)
        source.write(0, 1, 2)
        await source.until(lambda: source.failed_with)
        source.write(0)
        source.pool.close()
        assert len(source.failed_with) == 1
        assert isinstance(source.failed_with[0], DiskFailedError)
        assert source.ends == {}

    asyncio.run(run())


def test_files_come_before_replacements_and_names_last():
    class Disk(MemoryDisk):
        steps: ClassVar[list[str]] = []

        def sync(self, path):
            self.steps.append(f"sync {path}")

        def replace(self, path, _):
            self.steps.append(f"replace {path}")

        def sync_directory(self, path):
            self.steps.append(f"names {path}")

    async def run():
        source = Source(Disk())
        source.replacements = [("a", b""), ("b", b"")]
        source.write(1, 2, 3)
        await source.until(lambda: source.ends)
        source.pool.close()
        kinds = [step.split()[0] for step in Disk.steps]
        assert kinds == ["sync"] * 3 + ["replace"] * 2 + ["names"]

    asyncio.run(run())


def test_without_room_for_a_replacement_everything_is_put_back():
    async def run():
        disk = MemoryDisk(capacity_bytes=10)
        disk.append("1", [b"x"])
        source = Source(disk)
        source.replacements = [("a", bytes(20))]
        source.write(1)
        await source.until(lambda: source.refused)
        assert (source.ends, source.failed_with) == ({}, [])
        assert not source.pool.is_busy
        source.replacements = []
        source.pool.wake()
        await source.until(lambda: source.ends == {1: 1})
        source.pool.close()

    asyncio.run(run())


def test_a_file_removed_while_it_waits_is_no_failure():
    async def run():
        source = Source(MemoryDisk())
        source.write(0)
        await source.until(lambda: source.ends)
        assert not source.failed_with
        source.pool.close()

    asyncio.run(run())


def test_closing_waits_for_the_sync_and_reports_nothing():
    async def run():
        disk = GatedDisk()
        disk.append("0", [b"x"])
        source = Source(disk)
        source.write(0)
        assert disk.began.acquire(timeout=DEADLINE)
        threading.Timer(0, disk.gate.set).start()
        source.pool.close()
        assert disk.synced == ["0"]
        return source

    assert asyncio.run(run()).ends == {}


def real_source(root, *, open_files_max=512):
    disk = FileDisk(root, open_files_max=open_files_max)
    return disk, Source(disk, threads=3, rounds_max=4, quick=FileSyncs(disk, threads=3))


@pytest.mark.parametrize("open_files_max", [4, 512])
def test_many_files_on_a_real_disk(tmp_path, open_files_max):
    async def run():
        disk, source = real_source(tmp_path, open_files_max=open_files_max)
        for turn in range(10):
            for number in range(turn + 1):
                disk.append(str(number), [b"x" * 100])
            source.write(*range(turn + 1))
            await asyncio.sleep(0)
        await source.until(lambda: source.ends == source.written)
        assert len(source.sizes) <= 20
        source.pool.close()

    asyncio.run(run())


def test_open_files_are_synced_before_the_names(tmp_path):
    async def run():
        disk, source = real_source(tmp_path)
        disk.append("0", [b"x"])
        source.replacements = [("checkpoint", b"y")]
        source.write(0)
        await source.until(lambda: source.ends)
        assert disk.read("checkpoint", 0, 9) == b"y"
        source.pool.close()

    asyncio.run(run())


def test_an_open_file_that_cannot_be_synced_fails_the_pool(tmp_path):
    async def run():
        disk, source = real_source(tmp_path)
        disk.append("0", [b"x"])
        read, write = map(Descriptor, os.pipe())
        disk.find_open = lambda _: [disk.descriptor("0"), write]
        disk.append("1", [b"x"])
        source.write(0, 1)
        await source.until(lambda: source.failed_with)
        assert source.ends == {}
        assert [error.path for error in source.failed_with] == ["1"]
        source.write(0)
        assert not source.pool.is_busy
        source.pool.close()
        del read

    asyncio.run(run())


def test_closing_waits_for_syncs_of_open_files(tmp_path):
    async def run():
        disk, source = real_source(tmp_path)
        for number in range(20):
            disk.append(str(number), [b"x" * 1000])
        source.write(*range(20))
        source.pool.close()
        await asyncio.sleep(0)
        return source

    assert asyncio.run(run()).ends == {}
