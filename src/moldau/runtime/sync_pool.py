"""Sync rounds: the threads that sync one log directory, and their way back to the event loop."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock
from time import perf_counter
from typing import Protocol

from moldau.kernel.disk import Disk, DiskError, DiskFailedError, DiskFullError, DiskMissingError
from moldau.log.sync_round import SyncRound

# Syncs of different files share the file system's journal commits when they run at once: 64 files
# on ext4 took 21 ms one after the other, 10 ms by four threads, 7 ms by eight, 6 ms by sixteen.
THREADS = 8


class SyncSource(Protocol):
    """Knows what is to be synced; its methods are called on the event loop."""

    def take_round(self) -> SyncRound | None:
        """Return everything that gathered, None if there is nothing."""

    def synced(self, sync_round: SyncRound, /) -> None:
        """It is on the device. Only take note: the next round waits for this."""

    def announce(self, sync_round: SyncRound, /) -> None:
        """Run what waited for the round; the device is busy again already."""

    def put_back(self, sync_round: SyncRound, error: DiskFullError, /) -> None:
        """There was no room; `wake` when it may be tried again."""

    def failed(self, error: DiskError, /) -> None:
        """Writes are lost: nothing in the directory may be acknowledged any more."""


class SyncPool:
    """Runs the sync rounds of one log directory: idle, syncing, or stopped.

        idle     wake       -> syncing   what has gathered, if anything
        syncing  wake       -> syncing   what changes now gathers for the next one
        syncing  done       -> syncing   what has gathered meanwhile
        syncing  done       -> idle      nothing has
        syncing  no room    -> idle      everything is put back
        syncing  failed     -> stopped   for good: a failed sync is never tried again

    So a lone write never waits for company, and under load one sync serves everyone who came while
    the last one ran. `call_soon` brings a call to the event loop from any thread
    (`loop.call_soon_threadsafe`). A directory has its threads to itself, so that one device that
    hangs does not stop another.
    """

    def __init__(
        self,
        disk: Disk,
        source: SyncSource,
        *,
        call_soon: Callable[[Callable[[], object]], object],
        threads: int = THREADS,
    ) -> None:
        self.rounds = 0
        self.seconds = 0.0  # spent in rounds
        self.measured: Callable[[float], None] = _ignore
        """Told of the seconds that each round took."""
        self._disk = disk
        self._source = source
        self._call_soon = call_soon
        self._threads = threads
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="sync")
        self._is_busy = False
        self._is_stopped = False

    @property
    def is_busy(self) -> bool:
        """Whether a round is under way."""
        return self._is_busy

    def wake(self) -> None:
        """Something is to be synced; call it once for all that one wake-up has written."""
        if self._is_busy or self._is_stopped:
            return
        sync_round = self._source.take_round()
        if sync_round is not None:
            self._is_busy = True
            self._begin(_Run(self._disk, sync_round))

    def close(self) -> None:
        """Wait for the sync that runs. What it did is not reported any more."""
        self._is_stopped = True
        self._executor.shutdown(wait=True)

    def _begin(self, run: "_Run") -> None:
        """Start the next stage, or report that there is none; runs in any thread."""
        count = run.begin_stage()
        if count:
            for _ in range(min(self._threads, count)):
                self._executor.submit(self._work, run)
        else:
            self._call_soon(partial(self._resume, run, perf_counter() - run.started))

    def _work(self, run: "_Run") -> None:
        if run.work():
            self._begin(run)

    def _resume(self, run: "_Run", seconds: float) -> None:
        self._is_busy = False
        if self._is_stopped:
            return
        self.rounds += 1
        self.seconds += seconds
        self.measured(seconds)
        match run.error:
            case None:
                self._source.synced(run.sync_round)
                self.wake()
                self._source.announce(run.sync_round)
            case DiskFullError() as error:
                self._source.put_back(run.sync_round, error)
            case error:
                self._is_stopped = True
                self._source.failed(error)


class _Run:
    """One round on its way through the threads: files, then replacements, then directories."""

    def __init__(self, disk: Disk, sync_round: SyncRound) -> None:
        self.started = perf_counter()
        self.sync_round = sync_round
        self.error: DiskError | None = None
        self._lock = Lock()
        self._left = 0
        self._todo: deque[Callable[[], None]] = deque()
        self._stages: deque[list[Callable[[], None]]] = deque(
            [
                [partial(disk.sync, path) for path in sync_round.files],
                [partial(disk.replace, path, data) for path, data in sync_round.replacements],
                [partial(disk.sync_directory, path) for path in sync_round.directories],
            ]
        )

    def begin_stage(self) -> int:
        """Go on to the next stage with anything to do; return how much that is."""
        while self._stages and self.error is None:
            stage = self._stages.popleft()
            if stage:
                self._left = len(stage)
                self._todo.extend(stage)
                return self._left
        return 0

    def work(self) -> bool:
        """Do one thing after the other until nothing is left to begin; True ends the stage."""
        while True:
            try:
                step = self._todo.popleft()
            except IndexError:
                return False
            error = _try(step)
            with self._lock:
                # A full disk is the lesser evil: it must not hide a failure.
                if error is not None and (self.error is None or _is_full(self.error)):
                    self.error = error
                self._left -= 1
                if not self._left:
                    return True


def _ignore(_: float) -> None:
    """Nobody measures."""


def _is_full(error: DiskError) -> bool:
    return isinstance(error, DiskFullError)


def _try(step: Callable[[], None]) -> DiskError | None:
    try:
        step()
    except DiskMissingError:
        # Removed while it waited, with its partition or by retention. Whoever renames a file that
        # still counts syncs it first.
        return None
    except DiskError as error:
        return error
    except Exception as error:  # noqa: BLE001 - nobody waits for this thread, so it must report
        return DiskFailedError("", f"sync failed: {error!r}")
    return None
