"""Large appends: written by threads, so that the event loop serves others meanwhile."""

from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from threading import Event, Thread

from moldau.kernel.disk import Buffer, Disk, DiskFailedError, DiskFullError

WriteReport = Callable[["LargeWrite"], None]


class LargeWrite:
    """Pieces for the end of one file, on their way; `settle` waits for them on the event loop."""

    __slots__ = ("_disk", "_is_written", "_path", "_pieces", "_report", "error")

    def __init__(
        self, disk: Disk, path: str, pieces: Sequence[Buffer], report: WriteReport
    ) -> None:
        self._disk = disk
        self._path = path
        self._pieces = pieces
        self._report: WriteReport | None = report
        self._is_written = Event()
        self.error: DiskFullError | DiskFailedError | None = None
        """Why they could not be written, once that is known."""

    def run(self) -> None:
        """Write; in a thread."""
        try:
            self._disk.append(self._path, self._pieces)
        except (DiskFullError, DiskFailedError) as error:
            self.error = error
        except Exception as error:  # noqa: BLE001 - no caller waits here, so it must be reported
            self.error = DiskFailedError(self._path, f"a write failed: {error!r}")
        self._is_written.set()

    def settle(self) -> None:
        """Wait until it is written, and report it, unless that was done; on the event loop."""
        self._is_written.wait()
        report, self._report = self._report, None
        if report is not None:
            report(self)


class WritePool:
    """The threads that write for all log directories, as many as `num.io.threads` says.

    `call_soon` brings a call to the event loop from any thread. A file has one write at a time;
    who asks for them sees to that.
    """

    def __init__(
        self, threads: int, *, call_soon: Callable[[Callable[[], object]], object]
    ) -> None:
        self._threads_max = threads
        self._call_soon = call_soon
        self._writes: SimpleQueue[LargeWrite | None] = SimpleQueue()  # None ends a thread
        self._threads: list[Thread] = []
        self._thread_count = 0  # without those that are ending
        self._under_way = 0

    def resize(self, threads: int) -> None:
        """Have so many threads at most from now on."""
        self._threads_max = threads
        while self._thread_count > threads:
            self._thread_count -= 1
            self._writes.put(None)

    def begin(self, write: LargeWrite) -> None:
        """Have something written; when it is, `settle` is called on the event loop."""
        self._under_way += 1
        if self._thread_count < min(self._under_way, self._threads_max):
            self._thread_count += 1
            thread = Thread(target=self._work, name="write", daemon=True)
            self._threads = [each for each in self._threads if each.is_alive()]
            self._threads.append(thread)
            thread.start()
        self._writes.put(write)

    def close(self) -> None:
        """End the threads, after everything that was begun."""
        self.resize(0)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (write := self._writes.get()) is not None:
            write.run()
            self._call_soon(partial(self._done, write))

    def _done(self, write: LargeWrite) -> None:
        self._under_way -= 1
        write.settle()
