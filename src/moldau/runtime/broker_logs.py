"""The logs of a broker, as its handlers append to them and read them: cold reads in threads."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from moldau.broker.ports import LoadedPieces, Piece, SendablePieces
from moldau.kernel.disk import (
    Buffer,
    DiskColdError,
    DiskError,
    DiskMissingError,
)
from moldau.kernel.ids import Offset, TopicPartition
from moldau.log.errors import AppendError, CorruptLogError, OffsetOutOfRangeError
from moldau.log.extents import Extent
from moldau.runtime.buffer_pool import BufferPool
from moldau.runtime.environment import ColdRead
from moldau.runtime.log_store import LogStore

if TYPE_CHECKING:
    from moldau._native.files import FileRegion

NEVER: Final = 1 << 62
"""More bytes than a piece has."""


class BrokerLogs:
    """`LogsPort` and `LogWriter` over a store of logs: stages, reads and deletes records."""

    def __init__(
        self,
        store: LogStore,
        flush: Callable[[], None],
        pool: BufferPool | None = None,
        *,
        region_bytes_min: int = NEVER,
    ) -> None:
        self._store = store
        self._flush = flush  # writes what is staged, and tells who waits for it
        self._is_flushing = False
        self._pool = pool or BufferPool()
        self._region_bytes_min = region_bytes_min  # what is as large is sent from its file
        self._tasks: dict[asyncio.Task[None], None] = {}
        self.stage = store.stage  # as it is: every batch of a client goes through here

    def failed(self, partition: TopicPartition, error: Exception) -> None:
        """Take a broken log out of service."""
        if partition in self._store:
            self._store.failed(partition, error)

    def write_soon(self) -> None:
        """Write what is staged when the loop comes round."""
        if not self._is_flushing:
            self._is_flushing = True
            asyncio.get_running_loop().call_soon(self._write)

    def _write(self) -> None:
        self._is_flushing = False
        self._flush()

    # Beside the loop.

    def warm(
        self, partition: TopicPartition, cold: DiskColdError, then: Callable[[], None]
    ) -> None:
        """Read what was missing in a thread, so that the next look finds it in memory."""
        self._spawn(self._warm(partition, cold, then))

    async def _warm(
        self, partition: TopicPartition, cold: DiskColdError, then: Callable[[], None]
    ) -> None:
        if partition in self._store:
            host = self._store.place_of(partition)
            try:
                await host.in_thread(
                    partial(host.waiting.read, cold.path, cold.position, cold.size)
                )
            except (AppendError, DiskMissingError):
                # The directory is offline by now, or the file was renamed with its segment or its
                # whole log, which the next look finds.
                pass
            except DiskError as error:
                self.failed(partition, error)
        then()

    def delete_records(
        self, partition: TopicPartition, before: Offset, then: Callable[[Offset | None], None]
    ) -> None:
        """Move a log's start."""
        self._spawn(self._delete_records(partition, before, then))

    async def _delete_records(
        self, partition: TopicPartition, before: Offset, then: Callable[[Offset | None], None]
    ) -> None:
        start = None
        with suppress(AppendError, OffsetOutOfRangeError, KeyError):
            start = await self._store.delete_records(partition, before)
        then(start)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.__delitem__)

    # Reading.

    def load(self, pieces: Sequence[Piece], then: Callable[[LoadedPieces], None]) -> None:
        """Read pieces; what is not in memory, and all of it then, comes later."""
        reading = _Reading(self._pool)
        for partition, extent in pieces:
            self._begin(reading, partition, extent)

        def read() -> None:
            then(LoadedPieces(cast("list[Buffer | None]", reading.contents), reading.release))

        self._end(reading, read)

    def ready(self, pieces: Sequence[Piece], then: Callable[[SendablePieces], None]) -> None:
        """Read small pieces, and have the page cache hold large ones, which leave from there."""
        reading = _Reading(self._pool)
        for partition, extent in pieces:
            self._begin(reading, partition, extent, self._region_bytes_min)

        def made_ready() -> None:
            then(SendablePieces(reading.contents, reading.release, reading.memory_bytes))

        self._end(reading, made_ready)

    def _begin(
        self,
        reading: "_Reading",
        partition: TopicPartition,
        extent: Extent,
        region_bytes_min: int = NEVER,
    ) -> None:
        """Read what is in memory of one piece."""
        path, position, length = extent
        try:
            disk = self._store.place_of(partition).disk
            if length >= region_bytes_min:
                found = disk.find_region(path, position, length)
                if found is not None:
                    region, rest = found
                    reading.contents.append(region)
                    if rest is not None:
                        reading.wait(partition, rest)
                    return
            into = reading.take(length)
            rest = disk.begin_read(path, position, into)
        except (DiskError, CorruptLogError, KeyError) as error:
            self._give_up(partition, error)
            reading.contents.append(None)
            return
        reading.contents.append(into)
        if rest is not None:
            reading.wait(partition, rest)

    def _end(self, reading: "_Reading", then: Callable[[], None]) -> None:
        if reading.cold:
            self._spawn(self._read_cold(reading, then))
        else:
            then()

    async def _read_cold(self, reading: "_Reading", then: Callable[[], None]) -> None:
        """Wait for the device, for all that is missing at the same time."""
        await asyncio.gather(*(self._read_one(reading, *cold) for cold in reading.cold))
        then()

    async def _read_one(
        self, reading: "_Reading", number: int, partition: TopicPartition, read: ColdRead
    ) -> None:
        try:
            await self._store.place_of(partition).in_thread(read)
        except (AppendError, DiskError, CorruptLogError, KeyError) as error:
            self._give_up(partition, error)
            reading.contents[number] = None

    def _give_up(self, partition: TopicPartition, error: Exception) -> None:
        """Take a log that cannot be read out of service; a partition that is gone needs nothing."""
        match error:
            case KeyError() | AppendError():
                pass
            case _:
                self.failed(partition, error)


class _Reading:
    """The contents of pieces, as far as they are read."""

    __slots__ = ("_buffers", "_pool", "cold", "contents")

    def __init__(self, pool: BufferPool) -> None:
        self._pool = pool
        self._buffers: list[memoryview] = []
        self.contents: list[Buffer | FileRegion | None] = []
        self.cold: list[tuple[int, TopicPartition, ColdRead]] = []
        """By the number of its piece, what a thread has to wait for."""

    @property
    def memory_bytes(self) -> int:
        """How much memory the contents take."""
        return sum(map(len, self._buffers))

    def take(self, size: int) -> memoryview:
        """Return memory for a piece."""
        buffer = self._pool.take(size)
        self._buffers.append(buffer)
        return buffer[:size]

    def wait(self, partition: TopicPartition, rest: ColdRead) -> None:
        """Have a thread read the rest of the piece that was begun last."""
        self.cold.append((len(self.contents) - 1, partition, rest))

    def release(self) -> None:
        """Give the memory back."""
        for buffer in self._buffers:
            self._pool.give_back(buffer)
