import asyncio
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from moldau.kernel.clock import Instant
from moldau.kernel.disk import Disk, DiskFullError
from moldau.kernel.ids import Offset, TopicPartition
from moldau.log.compaction.plan import LogView
from moldau.log.compaction.run import CompactionLimits
from moldau.log.compaction.swap import Replacement, complete
from moldau.log.config import LogConfig
from moldau.runtime.cleaner import Cleaner, CleanerSettings
from moldau.runtime.disk import FileDisk
from moldau.runtime.machine import MachineEnvironment
from moldau.runtime.memory_disk import MemoryDisk
from tests.unit.log.compaction.logs import DIRECTORY, NOW_MS, PARTITION, Log, data

CONFIG = LogConfig(cleanup_policy=frozenset({"compact"}))
DEADLINE_SECONDS = 20


class OneLog:
    """A broker with one compacted partition."""

    def __init__(self, disk: Disk, *, segments: int = 2) -> None:
        self.log = Log(disk, segments * 2, CONFIG)
        batches = [[data(n * 2, (b"a", b"%d" % n), (b"k%d" % n, b"v"))] for n in range(segments)]
        self.log.write(batches, [])
        self.view = self.log.view()
        self.offset: Offset | None = None
        self.happened = asyncio.Event()
        self.error: Exception | None = None
        self.swaps = 0
        self.takes_swaps = True

    def views(self) -> list[LogView]:
        return [self.view]

    def find_view(self, _: TopicPartition) -> LogView | None:
        return self.view

    def disk_of(self, _: TopicPartition) -> Disk:
        return self.log.disk

    def cleaned_to(self, _: TopicPartition) -> Offset | None:
        return self.offset

    def set_cleaned_to(self, _: TopicPartition, offset: Offset) -> None:
        self.offset = offset
        self.happened.set()

    def swap(self, _: LogView, replacement: Replacement) -> bool:
        self.swaps += 1
        if self.takes_swaps:
            complete(self.log.disk, replacement)
            self.view = self.log.view()
        else:
            self.happened.set()
        return self.takes_swaps

    def compaction_failed(self, _: TopicPartition, error: Exception) -> None:
        self.error = error
        self.happened.set()

    def values(self) -> dict[bytes | None, bytes | None]:
        return {row.key: row.value for rows in self.log.read() for row in rows.rows}

    def record_count(self) -> int:
        return sum(len(rows.rows) for rows in self.log.read())


class Environment(MachineEnvironment):
    def now(self) -> Instant:
        return Instant(time.monotonic(), NOW_MS)


def make_cleaner(logs: OneLog, settings: CleanerSettings | None = None) -> Cleaner:
    return Cleaner(logs, settings or CleanerSettings(), Environment())


async def run_until(cleaner: Cleaner, event: asyncio.Event) -> None:
    task = asyncio.create_task(cleaner.run())
    async with asyncio.timeout(DEADLINE_SECONDS):
        await event.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def test_the_dirtiest_log_is_compacted(tmp_path: Path) -> None:
    async def scenario() -> None:
        logs = OneLog(FileDisk(tmp_path).waiting(), segments=3)
        before = logs.values()
        cleaner = make_cleaner(logs)
        await run_until(cleaner, logs.happened)
        assert logs.offset == 6
        assert (logs.values(), logs.record_count()) == (before, 4)
        assert cleaner.stats.compactions == 1
        assert (cleaner.stats.records_read, cleaner.stats.records_kept) == (6, 4)

    asyncio.run(scenario())


def test_a_log_that_changed_meanwhile_is_left_alone() -> None:
    async def scenario() -> None:
        logs = OneLog(MemoryDisk())
        logs.takes_swaps = False
        cleaner = make_cleaner(logs)
        await run_until(cleaner, logs.happened)
        assert logs.offset is None
        assert logs.record_count() == 4

    asyncio.run(scenario())


def test_an_abort_leaves_nothing_behind() -> None:
    class Slow(MemoryDisk):
        entered = threading.Event()
        go_on = threading.Event()

        def sync(self, path: str) -> None:
            super().sync(path)
            self.entered.set()
            assert self.go_on.wait(DEADLINE_SECONDS)

    async def scenario() -> None:
        disk = Slow()
        logs = OneLog(disk)
        cleaner = make_cleaner(logs)
        task = asyncio.create_task(cleaner.run())
        assert await asyncio.to_thread(disk.entered.wait, DEADLINE_SECONDS)
        cleaner.abort(PARTITION)
        logs.view = replace(logs.view, config=replace(CONFIG, min_cleanable_dirty_ratio=1.0))
        disk.go_on.set()
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not cleaner.stats.aborted:
                await asyncio.sleep(0)
        task.cancel()
        assert logs.swaps == 0
        assert not [name for name in disk.list(DIRECTORY) if name.endswith(".cleaned")]

    asyncio.run(scenario())


def test_a_damaged_log_is_not_tried_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        logs = OneLog(FileDisk(tmp_path).waiting())
        path = tmp_path / DIRECTORY / "00000000000000000002.log"
        content = bytearray(path.read_bytes())
        content[-2] ^= 1
        path.write_bytes(content)
        cleaner = make_cleaner(logs)
        await run_until(cleaner, logs.happened)
        assert "checksum" in str(logs.error)
        assert cleaner.stats.uncleanable == {PARTITION}
        assert not list(tmp_path.glob("*/*.cleaned"))

    asyncio.run(scenario())


def test_a_full_disk_is_waited_out() -> None:
    class Full(MemoryDisk):
        failures: Iterator[int] = iter(range(1))

        def append(self, path: str, pieces: object) -> None:
            if path.endswith(".cleaned") and pieces and next(self.failures, None) is not None:
                raise DiskFullError(path, "full")
            super().append(path, pieces)  # type: ignore[arg-type]

    async def scenario() -> None:
        logs = OneLog(Full())
        cleaner = make_cleaner(logs, CleanerSettings(backoff_ms=1))
        await run_until(cleaner, logs.happened)
        assert (logs.offset, cleaner.stats.aborted) == (4, 1)
        assert logs.record_count() == 3

    asyncio.run(scenario())


def test_the_throttle_slows_it_down() -> None:
    async def scenario() -> None:
        logs = OneLog(MemoryDisk())
        began = time.monotonic()
        cleaner = make_cleaner(logs, CleanerSettings(io_max_bytes_per_second=1000))
        await run_until(cleaner, logs.happened)
        assert logs.offset == 4
        # About 550 bytes are read and written; 300 are free.
        assert time.monotonic() - began > 0.1

    asyncio.run(scenario())


def test_memory_is_shared_by_the_threads() -> None:
    settings = CleanerSettings(threads=4, dedupe_buffer_size=4000, io_buffer_size=8000)
    assert settings.limits == CompactionLimits(keys_bytes=1000, io_bytes=1000, load_factor=0.9)


def test_the_number_of_threads_changes_while_it_runs() -> None:
    def workers() -> int:
        coroutines = [task.get_coro() for task in asyncio.all_tasks()]
        return sum(getattr(each, "__name__", "") == "_work" for each in coroutines)

    async def scenario() -> None:
        logs = OneLog(MemoryDisk())
        cleaner = make_cleaner(logs)
        task = asyncio.create_task(cleaner.run())
        async with asyncio.timeout(DEADLINE_SECONDS):
            await logs.happened.wait()
            for threads in (1, 3, 2, 1, 2):
                cleaner.configure(CleanerSettings(threads=threads))
                while workers() != threads:
                    await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert workers() == 0

    asyncio.run(scenario())
