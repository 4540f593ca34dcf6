"""Opening a log directory: lock, look, recover in threads, saying how far it got."""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from threading import Lock
from time import monotonic, thread_time

from moldau.kernel.clock import Instant
from moldau.kernel.disk import Disk, DiskFailedError
from moldau.kernel.ids import TopicPartition
from moldau.log.config import Durability, LogConfig
from moldau.log.directory import LogDirectory
from moldau.log.folders import FolderState, remarked_name
from moldau.log.identity import MetaProperties
from moldau.log.index_pages import PageCache
from moldau.log.opened_partition import Opened, open_partition
from moldau.log.state import Notice
from moldau.log.survey import Survey, claim, survey
from moldau.runtime.directory_lock import DirectoryLock
from moldau.runtime.disk import FileDisk
from moldau.runtime.memory_disk import MemoryDisk
from moldau.runtime.waiting import Sleep, sleep

PROGRESS_SECONDS = 5.0
FIRST_PARTITIONS = 64


@dataclass(frozen=True, slots=True)
class OpenContext:
    """What all log directories of a node are opened with; the callables run in any thread."""

    identity: MetaProperties
    """Whose they are; each has a directory id of its own."""
    config_of: Callable[[str], LogConfig]
    """The settings of a topic, by its name."""
    clock: Callable[[], Instant]
    entropy: Callable[[int], bytes]
    notice: Callable[[str, Notice], None]
    """Tell a person, with the directory that it is about."""
    durability: Durability = Durability.FSYNC
    cache: PageCache = field(default_factory=lambda: PageCache(32 << 20))
    recovery_threads: int = 2
    open_files_max: int = 512
    sleep: Sleep = sleep
    """How chores wait for their time."""
    memory: Disk = field(default_factory=MemoryDisk)
    """Where everything is with `durability=memory`."""
    locks: Mapping[str, DirectoryLock] = field(default_factory=dict)
    """The locks of directories that are locked already, by root."""


@dataclass(slots=True)
class OpenDirectory:
    """A log directory that is ours."""

    root: str
    disk: Disk
    waiting: Disk
    """The same disk with reads that wait for the device, for threads."""
    core: LogDirectory
    identity: MetaProperties
    found: Survey
    lock: DirectoryLock | None = None


def open_in_memory(context: OpenContext) -> OpenDirectory:
    """Open what is in memory: nothing, unless somebody has kept it from an earlier node."""
    disk = context.memory
    found = survey(disk)
    core = _core(context, disk, found)
    opened = OpenDirectory("memory", disk, disk, core, context.identity, found)
    if found.partitions:
        _Opening(opened, context).run()
    return opened


def open_directory(root: str, context: OpenContext) -> OpenDirectory:
    """Open a log directory and all its partitions; blocks, so it runs in a thread.

    `DirectoryInUseError` and `DirectoryRefusedError`: it is not ours. `DiskError`: it is broken.
    """
    try:
        os.makedirs(root, exist_ok=True)
    except OSError as error:
        reason = f"cannot make log directory {root}: {error.strerror}"
        raise DiskFailedError("", reason) from error
    disk = FileDisk(root, open_files_max=context.open_files_max)
    lock = context.locks.get(root) or DirectoryLock(root)
    try:
        waiting = disk.waiting()
        found = survey(waiting)
        new_id = directory_id_of(context.entropy(16))
        identity = claim(waiting, found, replace(context.identity, directory_id=new_id))
        core = _core(context, disk, found)
        opened = OpenDirectory(root, disk, waiting, core, identity, found, lock)
        for notice in found.notices:
            context.notice(root, notice)
        for folder in found.surplus:
            _discard(opened, context, folder)
        _Opening(opened, context).run()
    except BaseException:
        lock.release()
        raise
    return opened


def _core(context: OpenContext, disk: Disk, found: Survey) -> LogDirectory:
    return LogDirectory(
        disk,
        found,
        durability=context.durability,
        cache=context.cache,
        entropy=context.entropy,
    )


def directory_id_of(random: bytes) -> bytes:
    """Return a random id whose text does not begin with a dash, which tools take for an option."""
    return bytes([random[0] & 0x7F]) + random[1:]


def _discard(opened: OpenDirectory, context: OpenContext, folder: str) -> None:
    """Have a folder removed; until then, no start must take what is left of it for a copy."""
    name = remarked_name(folder, context.entropy(16), FolderState.DELETED)
    opened.waiting.rename(folder, name)
    opened.found.deleted.append(name)


class _Opening:
    """All partitions of a directory on their way to being open."""

    def __init__(self, directory: OpenDirectory, context: OpenContext) -> None:
        self._directory = directory
        self._context = context
        found = directory.found
        self._todo = iter([*found.partitions, *found.futures])
        self._done = 0
        self._bytes = 0
        self._said_at = monotonic()
        self._lock = Lock()
        self._failure: BaseException | None = None

    def run(self) -> None:
        others = self._context.recovery_threads - 1
        with ThreadPoolExecutor(max(1, others), thread_name_prefix="recovery") as executor:
            if self._directory.found.is_clean and not self._waits():
                others = 0
            work = [executor.submit(self._work, self._todo) for _ in range(others)]
            self._work(self._todo)
            for done in work:
                done.result()
        if self._failure is not None:
            raise self._failure

    def _waits(self) -> bool:
        """Open the first few; return whether that was waiting for the device rather than work.

        Where there are no records to be checked, all the work is the interpreter's: one thread is
        the quickest then, and others would take turns with it at every system call.
        """
        start, used = monotonic(), thread_time()
        self._work(islice(self._todo, FIRST_PARTITIONS))
        return thread_time() - used < (monotonic() - start) / 2

    def _work(self, todo: Iterator[TopicPartition]) -> None:
        while self._failure is None:
            with self._lock:
                partition = next(todo, None)
            if partition is None:
                return
            try:
                opened = self._open(partition)
            except DiskFailedError as error:
                self._failure = error
            except Exception as error:  # noqa: BLE001 - damage may show anyhow; it costs this one
                self._close(partition, error)
            else:
                with self._lock:
                    self._directory.core.adopt(opened)
                    self._done += 1

    def _open(self, partition: TopicPartition) -> Opened:
        context, directory = self._context, self._directory
        steps = open_partition(
            directory.waiting,
            directory.found,
            partition,
            context.config_of(partition.topic),
            now_ms=context.clock().wall_ms,
        )
        while True:
            try:
                self._count(next(steps))
            except StopIteration as stop:
                opened: Opened = stop.value
                break
        for notice in opened.state.notices:
            context.notice(directory.root, notice)
        return opened

    def _close(self, partition: TopicPartition, error: Exception) -> None:
        text = str(error) or repr(error)
        if folder := self._directory.found.futures.get(partition):
            # The log itself is elsewhere: it can be copied anew.
            self._context.notice(self._directory.root, Notice(folder, f"is given up: {text}"))
            _discard(self._directory, self._context, folder)
            return
        with self._lock:
            self._directory.core.close_partition(partition, text)
            self._done += 1
        notice = Notice(str(partition), f"stays offline: {text}", is_alarming=True)
        self._context.notice(self._directory.root, notice)

    def _count(self, size: int) -> None:
        with self._lock:
            self._bytes += size
            if monotonic() - self._said_at < PROGRESS_SECONDS:
                return
            self._said_at = monotonic()
        total = len(self._directory.found.partitions)
        text = f"{self._done} of {total} partitions are open, {self._bytes >> 20} MB were checked"
        self._context.notice(self._directory.root, Notice("recovery", text))
