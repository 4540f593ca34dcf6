"""Sync rounds: the threads that sync one log directory, and their way back to the event loop."""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

from moldau.kernel.disk import Disk, DiskError, DiskFailedError, DiskFullError, DiskMissingError
from moldau.log.sync_round import SyncRound
from moldau.runtime.environment import NodeEnvironment, QuickSyncs

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
    """Runs the sync rounds of one log directory, `rounds_max` at once; a round is one of these:

        begun    wake: what the source has gathered, and no other round is syncing
        done     the source takes note, and what has gathered meanwhile begins
        no room  everything in it is put back
        failed   the pool stops for good: a failed sync is never tried again

    So a lone write never waits for company, nor for the sync of another file: syncs of different
    files at once take hardly longer than one. Under load one sync serves all that came while the
    last one of the same file ran. A directory has its threads to itself, so that one device that
    hangs does not stop another.
    """

    def __init__(
        self,
        disk: Disk,
        source: SyncSource,
        environment: NodeEnvironment,
        *,
        threads: int = THREADS,
        rounds_max: int = 1,
        quick: QuickSyncs | None = None,
    ) -> None:
        self.rounds = 0
        self.seconds = 0.0  # spent in rounds
        self.measured: Callable[[float], None] = _ignore
        """Told of the seconds that each round took."""
        self._disk = disk
        self._source = source
        self._environment = environment
        self._threads = environment.threads(threads, "sync")
        self._thread_count = threads
        self._rounds_max = rounds_max
        self._quick = quick
        self._running: dict[_Run, None] = {}
        self._waiting: list[tuple[list[_Run], Callable[[], None]]] = []
        self._is_stopped = False

    @property
    def is_busy(self) -> bool:
        """Whether a round is under way."""
        return bool(self._running)

    def wake(self) -> None:
        """Something is to be synced; call it once for all that one wake-up has written."""
        if len(self._running) >= self._rounds_max or self._is_stopped:
            return
        sync_round = self._source.take_round()
        if sync_round is not None:
            run = _Run(self._disk, sync_round, self._environment.stopwatch())
            self._running[run] = None
            files = sync_round.files
            if files and self._quick and self._quick.try_begin(files, partial(self._go_on, run)):
                return
            self._begin(run)

    def when_ended(self, then: Callable[[], None]) -> None:
        """Call when all rounds that are under way now have ended, or by `let_go`."""
        self._waiting.append((list(self._running), then))

    def let_go(self) -> None:
        """Call all that wait for rounds to end: they may hang."""
        waiting, self._waiting = self._waiting, []
        for _, then in waiting:
            then()

    def close(self) -> None:
        """Wait for the sync that runs. What it did is not reported any more."""
        self._is_stopped = True
        if self._quick is not None:
            self._quick.close()
        self._threads.close()

    def _go_on(self, run: "_Run", error: DiskError | None) -> None:
        """Go on with what follows the files, which are synced or have failed."""
        run.skip_files(error)
        if run.has_more and not self._is_stopped:
            self._begin(run)
        else:
            self._resume(run, self._environment.stopwatch() - run.started)

    def _begin(self, run: "_Run") -> None:
        """Start the next stage, or report that there is none; runs in any thread."""
        count = run.begin_stage()
        if count:
            for _ in range(min(self._thread_count, count)):
                self._threads.start(partial(self._work, run))
        else:
            seconds = self._environment.stopwatch() - run.started
            self._environment.call_from_thread(partial(self._resume, run, seconds))

    def _work(self, run: "_Run") -> None:
        if run.work():
            self._begin(run)

    def _resume(self, run: "_Run", seconds: float) -> None:
        del self._running[run]
        if self._is_stopped:
            return
        self.rounds += 1
        self.seconds += seconds
        self.measured(seconds)
        match run.error:
            case None:
                self._source.synced(run.sync_round)
                self.wake()
                self._note_end(run)
                self._source.announce(run.sync_round)
            case DiskFullError() as error:
                self._source.put_back(run.sync_round, error)
                self._note_end(run)
            case error:
                self._is_stopped = True
                self._source.failed(error)
                self.let_go()

    def _note_end(self, run: "_Run") -> None:
        """Call those that have waited for this round and no other."""
        waiting, self._waiting = self._waiting, []
        for runs, then in waiting:
            left = [each for each in runs if each is not run]
            if left:
                self._waiting.append((left, then))
            else:
                then()


class _Run:
    """One round on its way through the threads: files, then replacements, then directories."""

    def __init__(self, disk: Disk, sync_round: SyncRound, started: float) -> None:
        self.started = started
        self.sync_round = sync_round
        self.error: DiskError | None = None
        # What threads share are queues, whose operations are whole.
        self._todo: deque[Callable[[], None]] = deque()
        self._to_end: deque[None] = deque()
        self._errors: deque[DiskError] = deque()
        self._stages: deque[list[Callable[[], None]]] = deque(
            [
                [partial(disk.sync, path) for path in sync_round.files],
                [partial(disk.replace, path, data) for path, data in sync_round.replacements],
                [partial(disk.sync_directory, path) for path in sync_round.directories],
            ]
        )

    def skip_files(self, error: DiskError | None) -> None:
        """The files were synced elsewhere, or have failed."""
        self._stages.popleft()
        self.error = error

    @property
    def has_more(self) -> bool:
        """Whether there is a stage with anything to do."""
        return self.error is None and any(self._stages)

    def begin_stage(self) -> int:
        """Go on to the next stage with anything to do; return how much that is."""
        while self._stages and self.error is None:
            stage = self._stages.popleft()
            if stage:
                self._to_end.extend([None] * (len(stage) - 1))
                self._todo.extend(stage)
                return len(stage)
        return 0

    def work(self) -> bool:
        """Do one thing after the other until nothing is left to begin; True ends the stage."""
        while True:
            try:
                step = self._todo.popleft()
            except IndexError:
                return False
            error = _try(step)
            if error is not None:
                self._errors.append(error)
            try:
                self._to_end.popleft()
            except IndexError:
                # The last step to end has none left to wait for. A full disk is the lesser evil:
                # it must not hide a failure.
                self.error = min(self._errors, key=_is_full, default=None)
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
