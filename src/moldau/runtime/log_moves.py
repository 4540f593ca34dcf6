"""Logs on their way between the directories of a broker, one after the other (KIP-113)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from moldau.kernel.clock import Instant
from moldau.kernel.disk import DiskColdError, DiskError, DiskFullError, DiskMissingError
from moldau.kernel.ids import TopicId, TopicPartition
from moldau.log.errors import AppendError, StorageFullError
from moldau.log.move import Move, Stage
from moldau.log.state import Notice
from moldau.runtime.directory_host import DirectoryHost, LogListener

logger = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
UNSYNCED_BYTES_MAX = 2 << 20
"""How much of a copy waits for the device at most: others' syncs, which wait behind it, are short,
and so is the one while the copy takes the log's place.
"""

T = TypeVar("T")
Places = MutableMapping[TopicPartition, DirectoryHost]
Assign = Callable[[TopicPartition, TopicId, bytes], Awaitable[None]]


@dataclass(slots=True)
class _Copying:
    """A move under way; whoever takes it from the others' sight sees to the copy."""

    move: Move
    topic_id: TopicId
    source: DirectoryHost
    target: DirectoryHost
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    unsynced_bytes: int = 0
    is_assigned: bool = False
    """Whether the controller was told that the log is in the target."""

    @property
    def partition(self) -> TopicPartition:
        return self.move.partition


class LogMoves:
    """Brings logs to the directories where they are wished to be.

    One task does everything, a slice at a time, so that a wish that changes is seen soon. The
    controller is told before the log's place changes, as in Kafka: if a
    directory is not there at a later start, what it says is never taken for an empty log.
    """

    def __init__(
        self,
        hosts: Sequence[DirectoryHost],
        places: Places,
        clock: Callable[[], Instant],
        listener: LogListener,
        *,
        flush: Callable[[], object],
        abort_compaction: Callable[[TopicPartition], None],
    ) -> None:
        self._hosts = hosts
        self._places = places
        self._clock = clock
        self._listener = listener
        self.flush = flush
        """Write what requests of this turn have staged; whoever answers them sets it."""
        self._abort_compaction = abort_compaction
        self.assign: Assign = _tell_nobody
        """Tell the controller where a log is; whoever knows it sets it."""
        self._wishes: dict[TopicPartition, DirectoryHost] = {}
        self._copying: dict[TopicPartition, _Copying] = {}
        self._wake = asyncio.Event()

    def __contains__(self, partition: object) -> bool:
        """Whether a log is on its way: then it is not compacted."""
        return partition in self._copying

    def target_of(self, partition: TopicPartition) -> DirectoryHost | None:
        """Return where a log is on its way to, if anywhere."""
        if partition in self._wishes:
            return self._wishes[partition]
        copying = self._copying.get(partition)
        return None if copying is None else copying.target

    def lag_of(self, partition: TopicPartition) -> int:
        """Return how many offsets a copy is behind; 0 if the log itself cannot be used."""
        with suppress(AppendError, KeyError):
            return self._copying[partition].move.lag
        return 0

    def wish(self, partition: TopicPartition, target: DirectoryHost) -> None:
        """Have a log in a directory; where it is: let it stay there."""
        self._wishes[partition] = target
        self._wake.set()

    async def stop(self, partition: TopicPartition) -> None:
        """Take a move back; when this returns there is no copy. One that is almost done ends.

        Does not wait for the controller, who may wait for whoever calls.
        """
        self._wishes.pop(partition, None)
        copying = self._copying.get(partition)
        if copying is None:
            # One may be left of a move that had to be given up.
            for host in self._hosts:
                if partition in host.core.futures and host.is_online:
                    await _delete(host, partition)
            return
        await copying.begun.wait()
        if copying.move.stage is not Stage.COPYING:
            await copying.ended.wait()
        elif self._is_current(copying):
            await self._remove(copying)

    # At the start.

    async def resume(
        self, topic_id_of: Callable[[TopicPartition], TopicId | None], *, is_complete: bool
    ) -> None:
        """Look after the copies that were found: nothing is appended to any log yet.

        A copy without its log is all there is if the last run was stopped between two renames. But
        unless all directories are there, the log may be in one that is not.
        """
        for target in self._hosts:
            for partition in sorted(target.core.futures):
                wanted, found = topic_id_of(partition), target.core.topic_ids.get(partition)
                source = self._places.get(partition)
                try:
                    if wanted is None or found not in (None, wanted):
                        await _delete_for_good(target, partition)
                    elif source is not None:
                        await self._resume(partition, source, target)
                    elif is_complete:
                        await self._take_over(partition, target)
                except (AppendError, DiskError) as error:
                    self._notice(target, partition, f"its copy cannot be used: {error}")

    async def _resume(
        self, partition: TopicPartition, source: DirectoryHost, target: DirectoryHost
    ) -> None:
        move = Move(partition, source.core, target.core)
        if partition in self._wishes or not await source.warmed(lambda: move.is_resumable):
            await _delete_for_good(target, partition)
        else:
            # What was appended to the copy alone was never acknowledged. It must not come back in
            # another crash, when the log has other records there.
            await target.truncate(partition, move.log.log_end)
            target.core.sync_soon(partition)
            await target.sync_all()
        self._wishes.setdefault(partition, target)

    async def _take_over(self, partition: TopicPartition, target: DirectoryHost) -> None:
        target.core.futures.discard(partition)
        await target.promote(partial(target.core.promote, partition))
        await target.sync_all()
        self._places[partition] = target
        self._notice(target, partition, "its move from another directory has ended")

    # Moving.

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            self._wake.clear()
            await self._heed_wishes()
            if not self._copying:
                await self._wake.wait()
            elif not await self._step(next(iter(self._copying.values()))):
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), RETRY_SECONDS)

    async def _heed_wishes(self) -> None:
        while self._wishes:
            partition, target = next(iter(self._wishes.items()))
            copying = self._copying.get(partition)
            try:
                if copying is not None and copying.target is not target:
                    await self._drop(copying)
                if self._wishes.get(partition) is not target:
                    continue  # it has changed meanwhile
                del self._wishes[partition]
                if partition not in self._copying:
                    await self._begin(partition, self._places[partition], target)
            except (AppendError, DiskError, KeyError) as error:
                self._wishes.pop(partition, None)
                logger.warning("%s is not moved: %s", partition, error)

    async def _begin(
        self, partition: TopicPartition, source: DirectoryHost, target: DirectoryHost
    ) -> None:
        if source is target:
            return
        self._abort_compaction(partition)
        topic_id = source.core.topic_ids[partition]
        move = Move(partition, source.core, target.core)
        copying = _Copying(move, topic_id, source, target)
        self._copying[partition] = copying
        try:
            start = await source.warmed(lambda: copying.move.start)
            await target.begin(copying.move, start)
        except BaseException:
            del self._copying[partition]
            raise
        finally:
            copying.begun.set()

    def _is_current(self, copying: _Copying) -> bool:
        return self._copying.get(copying.partition) is copying

    async def _drop(self, copying: _Copying) -> None:
        """Give a move up. The controller hears of it first: what it says, it must find."""
        await self._assign_back(copying)
        if self._is_current(copying):
            await self._remove(copying)

    async def _assign_back(self, copying: _Copying) -> None:
        if copying.is_assigned and copying.move.stage in (Stage.COPYING, Stage.SWITCHED):
            await self.assign(copying.partition, copying.topic_id, _id_of(copying.source))

    async def _remove(self, copying: _Copying) -> None:
        del self._copying[copying.partition]
        copying.ended.set()
        if copying.partition in copying.target.core.futures:
            await _with_room(partial(_delete, copying.target, copying.partition))

    async def _step(self, copying: _Copying) -> bool:
        """Go one step on; False if it has to wait for room."""
        try:
            await self._copy(copying)
        except (StorageFullError, DiskFullError, DiskMissingError):
            # Others may find room; or retention has taken what was about to be read.
            if self._is_current(copying):
                self._copying[copying.partition] = self._copying.pop(copying.partition)
            return False
        except Exception as error:  # whatever it is, the log itself stays
            if not self._is_current(copying):
                return True  # it was stopped meanwhile
            if not isinstance(error, AppendError | DiskError):
                logger.exception("moving %s has failed", copying.partition)
            self._notice(copying.target, copying.partition, f"is not moved here: {error}")
            with suppress(AppendError, DiskError):
                await self._give_up(copying)
        return True

    async def _give_up(self, copying: _Copying) -> None:
        """A move has failed; if the log cannot be used any more, the next start goes on with it."""
        source = copying.source.core
        if source.failure is None and copying.partition not in source.closed:
            await self._drop(copying)
        else:
            del self._copying[copying.partition]
            copying.ended.set()
            await self._assign_back(copying)

    async def _copy(self, copying: _Copying) -> None:
        move, source, target = copying.move, copying.source, copying.target
        if await source.warmed(lambda: move.is_overtaken):
            start = await source.warmed(lambda: move.start)
            await target.start_over(copying.partition, start)
            return
        extent = await source.warmed(move.next_extent)
        if extent is not None:
            data = await source.in_thread(partial(source.waiting.read, *extent))
            if self._is_current(copying):
                self._take(copying, data)
                copying.unsynced_bytes += len(data)
            await asyncio.sleep(0)
            if copying.unsynced_bytes >= UNSYNCED_BYTES_MAX:
                await self._sync(copying)
        elif not copying.is_assigned:
            copying.is_assigned = True
            await self.assign(copying.partition, copying.topic_id, _id_of(target))
        else:
            await self._sync(copying)
            async with source.changing():
                with suppress(DiskColdError):
                    if self._is_current(copying):
                        await self._replace(copying)

    async def _sync(self, copying: _Copying) -> None:
        if copying.unsynced_bytes and self._is_current(copying):
            copying.target.core.sync_soon(copying.partition)
            await copying.target.sync_all()
            copying.unsynced_bytes = 0

    def _take(self, copying: _Copying, data: bytes) -> None:
        target = copying.target
        target.admit(len(data))
        target.guard(lambda: copying.move.take(data, self._clock()))
        target.pool.wake()

    async def _replace(self, copying: _Copying) -> None:
        """Let the copy take the log's place, unless more than a slice has come meanwhile."""
        move, source, target = copying.move, copying.source, copying.target
        self.flush()
        extent = source.guard(move.next_extent)
        if source.guard(lambda: move.is_overtaken):
            return
        if extent is not None:
            data = source.guard(partial(source.disk.read, *extent))
            self._take(copying, data)
            if source.guard(move.next_extent) is not None:
                return
        partition = copying.partition
        delay_ms = move.log.config.file_delete_delay_ms
        log = target.guard(lambda: move.switch(self._clock()))
        self._places[partition] = target
        self._listener.moved(partition, log)
        try:
            folder = await self._rename(copying)
        except Exception as error:
            # The log's files are in two places, and the next start knows what to make of it.
            target.give_up(partition, error)
            copying.ended.set()
            raise
        del self._copying[partition]
        copying.ended.set()
        self._listener.note_durable(partition, move.finish())
        self._notice(target, partition, f"was moved here from {source.root}")
        if folder is not None:
            source.remove_later([folder], delay_ms / 1000)

    async def _rename(self, copying: _Copying) -> str | None:
        move, source, target = copying.move, copying.source, copying.target

        async def retire() -> str | None:
            return source.guard(move.retire)

        def promote() -> None:
            self.flush()
            move.promote()

        await _with_room(target.sync_all)
        await _with_room(target.store_checkpoints)
        folder = await _with_room(retire)
        await _with_room(source.sync_all)
        await _with_room(partial(target.promote, promote))
        await _with_room(target.sync_all)
        return folder

    def _notice(self, host: DirectoryHost, partition: TopicPartition, text: str) -> None:
        self._listener.notice(host.root, Notice(str(partition), text))


async def _delete(host: DirectoryHost, partition: TopicPartition) -> None:
    if await host.delete([partition], 0.0):
        raise StorageFullError(f"log directory {host.root} has no room to rename {partition}")


async def _delete_for_good(host: DirectoryHost, partition: TopicPartition) -> None:
    """Delete a copy so that it does not come back in a crash, when the log has other records."""
    await _delete(host, partition)
    await host.sync_all()


async def _with_room(step: Callable[[], Awaitable[T]]) -> T:
    """Do something, as often as it takes for the disk to have room."""
    while True:
        try:
            return await step()
        except (StorageFullError, DiskFullError):
            await asyncio.sleep(RETRY_SECONDS)


def _id_of(host: DirectoryHost) -> bytes:
    return host.identity.directory_id or b""


async def _tell_nobody(_: TopicPartition, _topic_id: TopicId, _directory_id: bytes) -> None:
    """There is no controller."""
