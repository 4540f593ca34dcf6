"""The turn's end: what was appended is written, large appends by threads."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from moldau._native.append import LogEnd, StagedLogs
from moldau.kernel.disk import Buffer, Disk, DiskFailedError, DiskFullError
from moldau.kernel.ids import TopicPartition
from moldau.log.errors import AppendError, StorageFullError
from moldau.log.partition import PartitionLog
from moldau.runtime.directory_host import DirectoryHost, LogListener
from moldau.runtime.environment import Job, NodeEnvironment, Threads

Release: TypeAlias = Callable[[], None]
Lend: TypeAlias = Callable[[Sequence[Buffer]], tuple[list[Buffer], Release]]
"""Returns pieces that stay as they are over the turn's end, and what gives them back."""

LARGE_BYTES_MIN: Final = 512 << 10
"""Pieces as large as this are worth a thread.

With batches of 1 MB the loop uses a third less time then, and the process 5 % more; with batches
of 300 KB a quarter less and 15 % more.
"""


class LargeWrite:
    """Pieces for the end of one file, on their way; `settle` waits for them on the event loop."""

    __slots__ = ("_disk", "_path", "_pieces", "_report", "error", "job")

    def __init__(
        self,
        disk: Disk,
        path: str,
        pieces: Sequence[Buffer],
        report: Callable[["LargeWrite"], None],
    ) -> None:
        self._disk = disk
        self._path = path
        self._pieces = pieces
        self._report: Callable[[LargeWrite], None] | None = report
        self.job: Job
        """What a thread does of it."""
        self.error: DiskFullError | DiskFailedError | None = None
        """Why they could not be written, once that is known."""

    def write(self) -> None:
        """Write; in a thread."""
        try:
            self._disk.append(self._path, self._pieces)
        except (DiskFullError, DiskFailedError) as error:
            self.error = error
        except Exception as error:  # noqa: BLE001 - no caller waits here, so it must be reported
            self.error = DiskFailedError(self._path, f"a write failed: {error!r}")

    def settle(self) -> None:
        """Wait until it is written, and report it, unless that was done; on the event loop."""
        if self._report is not None:
            self.job.wait()
            report, self._report = self._report, None
            report(self)


class _Berth(NamedTuple):
    """What is known of a log to which something was appended."""

    partition: TopicPartition
    host: DirectoryHost
    log: PartitionLog


class _Lent:
    """What a log has of memory that is not its own, while a thread writes."""

    __slots__ = ("count", "handed", "staged")

    def __init__(self) -> None:
        self.handed: list[Release] = []
        """For what the thread writes from."""
        self.staged: list[Release] = []
        """For what is staged meanwhile."""
        self.count = 0
        """How many of the staged pieces stay as they are."""


class LogWrites:
    """Gives to the disk what is appended to the logs of all directories.

    A log has one write at a time. While a thread writes, only ordinary appends are staged; they are
    written when the thread is done, and everything else waits for it (`LogEnd.settle`). So the
    order of a log's batches is that of their appends, and a write that fails takes back everything
    behind it.
    """

    def __init__(self, listener: LogListener, environment: NodeEnvironment) -> None:
        self._listener = listener
        self._environment = environment
        self._staged = StagedLogs()
        self._changed: dict[DirectoryHost, None] = {}  # with something that may have to be synced
        self._large: dict[LogEnd, _Lent] = {}  # those that threads write
        self._lend: Lend = _copy
        self._threads: Threads | None = None

    def use_threads(self, threads: int, lend: Lend) -> None:
        """Leave large appends to threads, which write from memory that `lend` keeps as it is."""
        self._lend = lend
        self._threads = self._environment.threads(threads, "write")

    def configure(self, threads: int) -> None:
        """`num.io.threads` may have changed."""
        if self._threads is not None:
            self._threads.resize(threads)

    def close(self) -> None:
        """End the threads; everything is written."""
        assert not self._large, "write before"
        if self._threads is not None:
            self._threads.close()
            self._threads = None

    def berth(self, partition: TopicPartition, host: DirectoryHost, log: PartitionLog) -> None:
        """Have a log written when something is appended to it, as long as its volume has room."""
        log.end.berth_in(self._staged, host.space, _Berth(partition, host, log))

    def write(self) -> dict[TopicPartition, AppendError]:
        """Write everything staged; return what could not be, and why."""
        failures = self.end_turn()
        while self._large:
            next(iter(self._large)).settle()
        return failures

    def end_turn(self) -> dict[TopicPartition, AppendError]:
        """Write everything staged, and leave large appends to threads.

        Returns what could not be written, and why. The listener hears what threads could not write.
        """
        failures: dict[TopicPartition, AppendError] = {}
        if not self._staged:
            return failures
        for end in self._staged.take():
            if end.handed_write is not None:
                self._keep(end)
            elif self._threads is not None and end.mean_piece_bytes >= LARGE_BYTES_MIN:
                self._hand_over(end, self._threads)
            elif (error := self._write(end)) is not None:
                failures[end.berth.partition] = error
        if self._changed:
            self._wake_pools()
        return failures

    def _write(self, end: LogEnd) -> AppendError | None:
        _, host, log = end.berth
        try:
            if not (end.try_write() or log.write()):
                return None  # what was to be appended was refused
        except (DiskFailedError, AppendError) as error:
            return _blame(host, error)
        if not end.is_noted:
            self._note_change(end)
        if not (end.needs_sync or end.commit()):
            self._listener.note_durable(end.berth.partition, log)
        return None

    def _note_change(self, end: LogEnd) -> None:
        partition, host, _ = end.berth
        host.core.note_change(partition, self._staged.now)
        self._changed[host] = None

    def _wake_pools(self) -> None:
        changed, self._changed = self._changed, {}
        for host in changed:
            host.pool.wake()

    # By threads.

    def _hand_over(self, end: LogEnd, threads: Threads) -> None:
        """Have a thread write what is staged."""
        self._keep(end)
        lent = self._large[end]
        lent.handed, lent.staged, lent.count = lent.staged, [], 0
        segment = end.segments[-1]
        write = LargeWrite(segment.disk, segment.path, end.pieces, partial(self._end_write, end))
        end.hand_over(write)
        write.job = threads.start(partial(self._write_large, write))

    def _write_large(self, write: LargeWrite) -> None:
        """Write, in a thread, and have the event loop hear of it."""
        write.write()
        self._environment.call_from_thread(write.settle)

    def _keep(self, end: LogEnd) -> None:
        """Have what is staged stay as it is over the turn's end."""
        lent = self._large.setdefault(end, _Lent())
        pieces, release = self._lend(end.pieces[lent.count :])
        end.pieces[lent.count :] = pieces
        lent.count = len(end.pieces)
        lent.staged.append(release)

    def _end_write(self, end: LogEnd, write: LargeWrite) -> None:
        """A thread has written, or could not; what was staged meanwhile has its turn."""
        partition, host, log = end.berth
        lent = self._large.pop(end)
        _call_all(lent.handed)
        try:
            end.end_write(write.error)
        except (DiskFailedError, AppendError) as error:
            _call_all(lent.staged)
            self._listener.lost(partition, _blame(host, error))
            return
        if not end.is_noted:
            self._note_change(end)
        self._write_next(end, lent)
        if not (end.needs_sync or end.commit()):
            self._listener.note_durable(partition, log)
        if self._changed:
            self._wake_pools()

    def _write_next(self, end: LogEnd, lent: _Lent) -> None:
        if self._threads is not None and end.mean_piece_bytes >= LARGE_BYTES_MIN:
            self._large[end] = lent
            self._hand_over(end, self._threads)
            return
        error = self._write(end)
        _call_all(lent.staged)
        if error is not None:
            self._listener.lost(end.berth.partition, error)


def _copy(pieces: Sequence[Buffer]) -> tuple[list[Buffer], Release]:
    """Keep pieces as they are by copying them."""
    return [bytes(piece) for piece in pieces], lambda: None


def _call_all(releases: Iterable[Release]) -> None:
    for release in releases:
        release()


def _blame(host: DirectoryHost, error: DiskFailedError | AppendError) -> AppendError:
    """Return what to tell of a write that failed; the directory may be full or broken by it."""
    if isinstance(error, DiskFailedError):
        return host.broken_by(error)
    if isinstance(error, StorageFullError):
        host.exhausted()
    return error
