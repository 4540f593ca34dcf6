"""Opening a log directory: lock, look, recover in threads, saying how far it got."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

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
from moldau.runtime.environment import HeldLock, NodeEnvironment, StoredDisk
from moldau.runtime.memory_disk import MemoryDisk

PROGRESS_SECONDS = 5.0
FIRST_PARTITIONS = 64


@dataclass(frozen=True, slots=True)
class OpenContext:
    """What all log directories of a node are opened with; the callables run in any thread."""

    environment: NodeEnvironment
    identity: MetaProperties
    """Whose they are; each has a directory id of its own."""
    config_of: Callable[[str], LogConfig]
    """The settings of a topic, by its name."""
    notice: Callable[[str, Notice], None]
    """Tell a person, with the directory that it is about."""
    durability: Durability = Durability.FSYNC
    cache: PageCache = field(default_factory=lambda: PageCache(32 << 20))
    recovery_threads: int = 2
    open_files_max: int = 512
    memory: StoredDisk = field(default_factory=MemoryDisk)
    """Where everything is with `durability=memory`."""
    locks: Mapping[str, HeldLock] = field(default_factory=dict)
    """The locks of directories that are locked already, by root."""


@dataclass(slots=True)
class OpenDirectory:
    """A log directory that is ours."""

    root: str
    disk: StoredDisk
    waiting: Disk
    """The same disk with reads that wait for the device, for threads."""
    core: LogDirectory
    identity: MetaProperties
    found: Survey
    lock: HeldLock | None = None


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
    environment = context.environment
    disk = environment.open_disk(root, open_files_max=context.open_files_max)
    lock = context.locks.get(root) or environment.lock_directory(root)
    try:
        waiting = disk.waiting()
        found = survey(waiting)
        new_id = directory_id_of(environment.entropy(16))
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
        entropy=context.environment.entropy,
    )


def directory_id_of(random: bytes) -> bytes:
    """Return a random id whose text does not begin with a dash, which tools take for an option."""
    return bytes([random[0] & 0x7F]) + random[1:]


def _discard(opened: OpenDirectory, context: OpenContext, folder: str) -> None:
    """Have a folder removed; until then, no start must take what is left of it for a copy."""
    name = remarked_name(folder, context.environment.entropy(16), FolderState.DELETED)
    opened.waiting.rename(folder, name)
    opened.found.deleted.append(name)


class _Opening:
    """All partitions of a directory on their way to being open.

    Threads share queues, whose operations are whole; the directory takes in what they have opened
    when all have ended.
    """

    def __init__(self, directory: OpenDirectory, context: OpenContext) -> None:
        self._directory = directory
        self._context = context
        found = directory.found
        self._partitions = [*found.partitions, *found.futures]
        self._todo = deque(self._partitions)
        self._opened: dict[TopicPartition, Opened] = {}
        self._closed: dict[TopicPartition, str] = {}
        self._workers: list[_Worker] = []
        self._said_at = context.environment.monotonic()
        self._failure: BaseException | None = None

    def run(self) -> None:
        environment = self._context.environment
        others = self._context.recovery_threads - 1
        # Where there are no records to be checked, all the work is the interpreter's: one thread
        # is the quickest then, and others would take turns with it at every system call.
        is_clean = self._directory.found.is_clean
        if is_clean and not environment.waits_for_device(self._open_first):
            others = 0
        threads = environment.threads(max(1, others), "recovery")
        jobs = [threads.start(partial(self._work, self._worker())) for _ in range(others)]
        self._work(self._worker())
        for job in jobs:
            job.wait()
        threads.close()
        if self._failure is not None:
            raise self._failure
        for partition in self._partitions:
            if partition in self._opened:
                self._directory.core.adopt(self._opened[partition])
            elif partition in self._closed:
                self._directory.core.close_partition(partition, self._closed[partition])

    def _worker(self) -> "_Worker":
        self._workers.append(_Worker())
        return self._workers[-1]

    def _open_first(self) -> None:
        self._work(self._worker(), FIRST_PARTITIONS)

    def _work(self, worker: "_Worker", count_max: int | None = None) -> None:
        while self._failure is None and worker.done != count_max:
            try:
                partition = self._todo.popleft()
            except IndexError:
                return
            try:
                self._opened[partition] = self._open(partition, worker)
            except DiskFailedError as error:
                self._failure = error
            except Exception as error:  # noqa: BLE001 - damage may show anyhow; it costs this one
                self._give_up(partition, error)
            worker.done += 1

    def _give_up(self, partition: TopicPartition, error: Exception) -> None:
        try:
            self._close(partition, error)
        except Exception as failure:  # noqa: BLE001 - raised again once all threads have ended
            self._failure = failure

    def _open(self, partition: TopicPartition, worker: "_Worker") -> Opened:
        context, directory = self._context, self._directory
        steps = open_partition(
            directory.waiting,
            directory.found,
            partition,
            context.config_of(partition.topic),
            now_ms=context.environment.now().wall_ms,
        )
        while True:
            try:
                worker.bytes += next(steps)
            except StopIteration as stop:
                opened: Opened = stop.value
                break
            self._say()
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
        self._closed[partition] = text
        notice = Notice(str(partition), f"stays offline: {text}", is_alarming=True)
        self._context.notice(self._directory.root, notice)

    def _say(self) -> None:
        """Say how far it got, once in a while; two threads at the same time do no harm."""
        monotonic = self._context.environment.monotonic()
        if monotonic - self._said_at < PROGRESS_SECONDS:
            return
        self._said_at = monotonic
        done = sum(worker.done for worker in self._workers)
        size = sum(worker.bytes for worker in self._workers)
        total = len(self._directory.found.partitions)
        text = f"{done} of {total} partitions are open, {size >> 20} MB were checked"
        self._context.notice(self._directory.root, Notice("recovery", text))


@dataclass(slots=True)
class _Worker:
    """How far one of the threads got."""

    done: int = 0
    bytes: int = 0
