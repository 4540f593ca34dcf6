"""The threads that sync one log directory, and their way back to the event loop."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock
from time import perf_counter

from moldau.kernel.disk import Disk, DiskError, DiskFailedError, DiskMissingError
from moldau.kernel.ids import Offset, TopicPartition
from moldau.runtime.group_commit import (
    Dirty,
    Effect,
    Event,
    GoOffline,
    GroupCommit,
    StartSync,
    SyncDone,
    Synced,
    SyncFailed,
    Truncated,
    Written,
)

# Syncs of different files share the file system's journal commits when they run at once: 64 files
# on ext4 took 21 ms one after the other, 10 ms by four threads, 7 ms by eight, 6 ms by sixteen.
THREADS = 8


class SyncPool:
    """Runs the group commit of one log directory.

    `call_soon` brings a call to the event loop from any thread (`loop.call_soon_threadsafe`); the
    other callbacks and all methods run there. A directory has its threads to itself, so that one
    device that hangs does not stop another.
    """

    def __init__(
        self,
        disk: Disk,
        *,
        call_soon: Callable[[Callable[[], object]], object],
        on_synced: Callable[[TopicPartition, Offset], None],
        on_failed: Callable[[DiskError], None],
        on_batch: Callable[[int, float], None] | None = None,
        threads: int = THREADS,
    ) -> None:
        self._disk = disk
        self._call_soon = call_soon
        self._on_synced = on_synced
        self._on_failed = on_failed
        self._on_batch = on_batch
        self._threads = threads
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="sync")
        self._commit = GroupCommit()
        self._closed = False

    def written(self, dirty: Sequence[Dirty]) -> None:
        """Sync what one wake-up wrote; call it once for all partitions."""
        self._perform(self._commit.handle(Written(dirty)))

    def truncated(self, partition: TopicPartition, end: Offset) -> None:
        """Forget that the partition was written past `end`; 0 if it was deleted."""
        self._perform(self._commit.handle(Truncated(partition, end)))

    def close(self) -> None:
        """Wait for the sync that runs. What it did is not reported any more."""
        self._closed = True
        self._executor.shutdown(wait=True)

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case StartSync(files, directories):
                    self._start(files, directories)
                case Synced(partition, end):
                    self._on_synced(partition, end)
                case GoOffline(error):
                    self._on_failed(error)

    def _start(self, files: Sequence[str], directories: Sequence[str]) -> None:
        run = _Run(self._disk, files, directories, finished=self._finished)
        for _ in range(min(self._threads, len(files) + len(directories))):
            self._executor.submit(run.work)

    def _finished(self, run: "_Run") -> None:
        """Report back; runs in the thread that was last to finish."""
        self._call_soon(partial(self._resume, run, perf_counter() - run.started))

    def _resume(self, run: "_Run", seconds: float) -> None:
        if self._closed:
            return
        if self._on_batch:
            self._on_batch(run.count, seconds)
        event: Event = SyncFailed(run.error) if run.error else SyncDone()
        self._perform(self._commit.handle(event))


class _Run:
    """One batch on its way through the threads."""

    def __init__(
        self,
        disk: Disk,
        files: Sequence[str],
        directories: Sequence[str],
        *,
        finished: Callable[["_Run"], None],
    ) -> None:
        self.started = perf_counter()
        self.count = len(files) + len(directories)
        self.error: DiskError | None = None
        self._finished = finished
        self._left = self.count
        self._lock = Lock()
        self._todo = deque(
            [(disk.sync, path) for path in files]
            + [(disk.sync_directory, path) for path in directories]
        )

    def work(self) -> None:
        """Sync one after the other until nothing is left to begin."""
        while True:
            try:
                sync, path = self._todo.popleft()
            except IndexError:
                return
            error = _try_sync(sync, path)
            with self._lock:
                self.error = self.error or error
                self._left -= 1
                last = not self._left
            if last:
                self._finished(self)


def _try_sync(sync: Callable[[str], None], path: str) -> DiskError | None:
    try:
        sync(path)
    except DiskMissingError:
        # Removed while it waited, with its partition or by retention. Whoever renames a file that
        # still counts syncs it first.
        return None
    except DiskError as error:
        return error
    except Exception as error:  # noqa: BLE001 - nobody waits for this thread, so it must report
        return DiskFailedError(path, f"sync failed: {error!r}")
    return None
