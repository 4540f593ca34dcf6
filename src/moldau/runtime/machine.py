"""The real machine as a node's environment: its clocks, threads, disks, network and chance."""

import asyncio
import os
import socket
import time
from collections.abc import Callable, Sequence

from moldau.broker.ports import Timer
from moldau.kernel.clock import Instant
from moldau.kernel.disk import DiskFailedError
from moldau.runtime.directory_lock import DirectoryLock
from moldau.runtime.disk import FileDisk
from moldau.runtime.environment import HeldLock, ListeningSocket, StoredDisk, Threads
from moldau.runtime.file_sender import FileSender
from moldau.runtime.listening_sockets import listen
from moldau.runtime.machine_threads import MachineThreads
from moldau.runtime.process_limits import open_files_for_logs
from moldau.runtime.waiting import sleep

# Each turn of the listener asks for the time: a named tuple's own constructor takes twice as long.
_new, _monotonic, _time_ns = tuple.__new__, time.monotonic, time.time_ns


class MachineEnvironment:
    """What a node takes from the machine, on the event loop that runs.

    What guards the process itself, and not what a client sees, goes by the loop: how long a stop
    waits, when a full disk is tried again.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.monotonic: Callable[[], float] = time.monotonic
        """The clock for timeouts alone, which is quicker."""
        self.stopwatch: Callable[[], float] = time.perf_counter
        """The clock for how long work takes."""

    # Time and chance.

    def now(self) -> Instant:
        """Return both clocks."""
        return _new(Instant, (_monotonic(), _time_ns() // 1_000_000))

    async def sleep(self, seconds: float, /, wake: asyncio.Event | None = None) -> None:
        """Wait so long, or until `wake` is set."""
        await sleep(seconds, wake)

    def at(self, monotonic: float, do: Callable[[], None]) -> Timer:
        """Have something done at a time."""
        # The loop has a clock of its own, which stands still during a turn.
        return self._loop.call_later(max(0.0, monotonic - time.monotonic()), do)

    def entropy(self, size: int) -> bytes:
        """Return random bytes."""
        return os.urandom(size)

    # Threads.

    def call_from_thread(self, do: Callable[[], object], /) -> None:
        """Have something done on the event loop; from any thread."""
        self._loop.call_soon_threadsafe(do)

    def threads(self, count: int, purpose: str) -> Threads:
        """Return threads that are started when they are needed."""
        return MachineThreads(self._loop, count, purpose)

    def waits_for_device(self, work: Callable[[], object]) -> bool:
        """Do some work in the calling thread; whether it was waiting for most of the time."""
        start, used = time.monotonic(), time.thread_time()
        work()
        return time.thread_time() - used < (time.monotonic() - start) / 2

    # Disks.

    def open_disk(self, root: str, *, open_files_max: int = 512) -> StoredDisk:
        """Return the disk of a log directory, which is made if need be; `DiskError`."""
        try:
            os.makedirs(root, exist_ok=True)
        except OSError as error:
            reason = f"cannot make log directory {root}: {error.strerror}"
            raise DiskFailedError("", reason) from error
        return FileDisk(root, open_files_max=open_files_max)

    def lock_directory(self, root: str) -> HeldLock:
        """Have a log directory alone; `DirectoryInUseError` says which process has it."""
        return DirectoryLock(root)

    def open_files_max(self, wanted: int, directories: int) -> int:
        """Return how many files of each log directory may stay open."""
        return open_files_for_logs(wanted, directories)

    # The network.

    def listen(
        self, host: str, port: int, *, backlog: int, receive_bytes: int
    ) -> Sequence[ListeningSocket]:
        """Listen on a host's addresses, all on one port, 0 for any; `OSError`."""
        return listen(host, port, backlog=backlog, receive_bytes=receive_bytes)

    async def resolve(self, host: str) -> Sequence[str]:
        """Return the addresses of a host; `OSError` or `UnicodeError` if it has none."""
        found = await self._loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return [str(address[0]) for *_, address in found]

    def file_sender(
        self, transport: asyncio.Transport, gone: Callable[[], None], fail: Callable[[], None]
    ) -> FileSender:
        """Return what sends regions of files through a transport."""
        return FileSender(transport, gone, fail)
