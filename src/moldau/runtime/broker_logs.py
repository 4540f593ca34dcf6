"""The logs of a broker, as its handlers append to them and read them: cold reads in threads."""

import asyncio
import errno
import os
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from moldau.broker.ports import LoadedPieces, Piece
from moldau.kernel.disk import (
    Buffer,
    DiskColdError,
    DiskError,
    DiskFailedError,
    DiskMissingError,
)
from moldau.kernel.ids import Offset, TopicPartition
from moldau.log.errors import AppendError, CorruptLogError, OffsetOutOfRangeError
from moldau.runtime.buffer_pool import BufferPool
from moldau.runtime.disk import NOWAIT, FileDisk
from moldau.runtime.log_store import LogStore
from moldau.runtime.open_files import Descriptor


class _Cold(NamedTuple):
    """What of a piece is still to be read; the descriptor keeps the file, whatever its name is."""

    number: int
    file: Descriptor
    position: int
    into: memoryview


class BrokerLogs:
    """`LogsPort` and `LogWriter` over a store of logs: stages, reads and deletes records."""

    def __init__(
        self, store: LogStore, flush: Callable[[], None], pool: BufferPool | None = None
    ) -> None:
        self._store = store
        self._flush = flush  # writes what is staged, and tells who waits for it
        self._is_flushing = False
        self._pool = pool or BufferPool()
        self._flags: dict[FileDisk, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
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
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Reading.

    def load(self, pieces: Sequence[Piece], then: Callable[[LoadedPieces], None]) -> None:
        """Read pieces; what is not in memory, and all of it then, comes later."""
        buffer = self._pool.take(sum(piece.extent.length for piece in pieces))
        contents: list[Buffer | None] = []
        cold: list[_Cold] = []
        end = 0
        for number, (partition, extent) in enumerate(pieces):
            start, end = end, end + extent.length
            into = buffer[start:end]
            try:
                disk = self._store.place_of(partition).disk
                if not isinstance(disk, FileDisk):
                    contents.append(disk.read(*extent))
                    continue
                file = disk.descriptor(extent.path)
                filled = self._read_cached(disk, file, extent.position, into)
            except (DiskError, KeyError, OSError) as error:
                self._give_up(partition, error)
                contents.append(None)
                continue
            contents.append(into)
            if filled < extent.length:
                cold.append(_Cold(number, file, extent.position + filled, into[filled:]))
        loaded = LoadedPieces(contents, partial(self._pool.give_back, buffer))
        if cold:
            self._spawn(self._load_cold(pieces, cold, contents, partial(then, loaded)))
        else:
            then(loaded)

    def _read_cached(
        self, disk: FileDisk, file: Descriptor, position: int, into: memoryview
    ) -> int:
        """Read as much as is in memory; return how much that is."""
        filled = 0
        while filled < len(into):
            flags = self._flags.get(disk, NOWAIT)
            try:
                count = os.preadv(file.fd, [into[filled:]], position + filled, flags)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.EOPNOTSUPP or not flags:
                    raise
                self._flags[disk] = 0  # tmpfs, for one, cannot say, and never waits long
                continue
            if not count:
                break
            filled += count
        return filled

    async def _load_cold(
        self,
        pieces: Sequence[Piece],
        cold: Sequence[_Cold],
        contents: list[Buffer | None],
        then: Callable[[], None],
    ) -> None:
        for rest in cold:
            partition, extent = pieces[rest.number]
            try:
                host = self._store.place_of(partition)
                await host.in_thread(partial(_read_waiting, rest, extent.path))
            except (AppendError, CorruptLogError, KeyError) as error:
                self._give_up(partition, error)
                contents[rest.number] = None
        then()

    def _give_up(self, partition: TopicPartition, error: Exception) -> None:
        """Take a log that cannot be read out of service; a partition that is gone needs nothing."""
        match error:
            case KeyError() | AppendError():
                pass
            case OSError():
                self.failed(partition, DiskFailedError("", error.strerror or str(error)))
            case _:
                self.failed(partition, error)


def _read_waiting(rest: _Cold, path: str) -> None:
    """Read what is missing, in a thread."""
    filled = 0
    while filled < len(rest.into):
        try:
            count = os.preadv(rest.file.fd, [rest.into[filled:]], rest.position + filled)
        except OSError as error:
            raise DiskFailedError(path, error.strerror or str(error)) from error
        if not count:
            position = rest.position + filled
            raise CorruptLogError(path, position, "the file is shorter than its segment")
        filled += count
