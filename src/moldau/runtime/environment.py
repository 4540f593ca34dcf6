"""What a node takes from the machine that it runs on; nothing in the shell takes it elsewhere.

The real machine is one environment (`runtime/machine.py`), a test's broker with movable clocks
another, the simulator's world a third.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, TypeVar

from moldau._native.files import FileRegion
from moldau.broker.calls import OutgoingPiece
from moldau.broker.ports import Environment
from moldau.kernel.disk import Disk, DiskError

Result = TypeVar("Result")


class Job(Protocol):
    """A call that a thread makes."""

    def wait(self) -> None:
        """Block until the call has ended; what it raised is not raised here."""


class Threads(Protocol):
    """Threads for calls that wait for a device; each purpose has some of its own.

    At most so many calls as there are threads run at once, the others in the order of their start.
    A call may start further ones. What a call does to the node it hands to the event loop with
    `NodeEnvironment.call_from_thread`.
    """

    def start(self, call: Callable[[], object]) -> Job:
        """Have a thread make a call, which catches its own errors."""

    def run(self, call: Callable[[], Result]) -> "asyncio.Future[Result]":
        """Have a thread make a call; the event loop's future has its result or error."""

    def resize(self, count: int) -> None:
        """Have so many threads from now on."""

    def close(self, *, wait: bool = True) -> None:
        """Take no further call; wait for those that were started, or let them end by themselves."""


class QuickSyncs(Protocol):
    """Syncs files that are at hand without the interpreter."""

    def try_begin(self, paths: Sequence[str], then: Callable[[DiskError | None], None], /) -> bool:
        """Sync files, and call on the event loop then; decline, with False, if that may block."""

    def close(self) -> None:
        """Wait for the syncs that run; what became of them is not told any more."""


ColdRead: TypeAlias = Callable[[], None]
"""Waits for the device, in a thread: `DiskError`, and `CorruptLogError` if the file is shorter."""


class StoredDisk(Disk, Protocol):
    """The disk of a log directory: its reads are for the event loop, and never wait."""

    def waiting(self) -> Disk:
        """Return the same disk with reads that wait for the device, for threads."""

    def total_bytes(self) -> int | None:
        """Return the size of the volume; None where room has no end."""

    def quick_syncs(self, threads: int) -> QuickSyncs | None:
        """Return what syncs open files quickest, if the disk has such a thing."""

    def begin_read(self, path: str, position: int, into: memoryview) -> ColdRead | None:
        """Read what is in memory of a range of a file; return what reads the rest, if any is left.

        The file is the one that has the name now, whatever becomes of the name meanwhile.
        `DiskError`, and `CorruptLogError` if the file is shorter.
        """

    def find_region(
        self, path: str, position: int, length: int
    ) -> tuple[FileRegion, ColdRead | None] | None:
        """Return a range of a file for a connection to send from there, None if none can.

        With it comes what brings the range into memory, if it is not there.
        """


class HeldLock(Protocol):
    """The right to use a log directory."""

    def release(self) -> None:
        """Let others have the directory."""


class RegionSender(Protocol):
    """Sends pieces, regions of files among them, through a connection."""

    @property
    def unsent_bytes(self) -> int:
        """How much of what was queued is not sent."""

    def queue(self, pieces: list[OutgoingPiece], size: int) -> None:
        """Have pieces sent; nothing of what was queued before may be left."""

    def go_on(self) -> bool:
        """Send what the socket takes now, and the rest later; say whether all is sent."""

    def close(self) -> None:
        """Let go of the connection."""


class AcceptedSocket(Protocol):
    """A connection that a client has opened, before its protocol reads from it."""

    peer_host: str
    peer_port: int
    local_host: str
    """The address of ours that the client has dialled."""

    async def begin(self, protocol: asyncio.BufferedProtocol) -> None:
        """Have a protocol serve the connection; `OSError` if the client has gone."""

    def close(self) -> None:
        """Hang up."""


class ListeningSocket(Protocol):
    """An address that clients dial."""

    port: int

    def accept(self, *, send_bytes: int) -> AcceptedSocket | None:
        """Return the next connection, None if no client waits; `OSError` if that fails.

        `send_bytes` is the size of the system's buffer for what is sent; the system's own if it
        is not above 0.
        """

    def when_ready(self, do: Callable[[], None] | None) -> None:
        """Call on the event loop while clients wait to be accepted; None: call no more."""

    def close(self) -> None:
        """Listen no more; clients that wait are refused."""


class NodeEnvironment(Environment, Protocol):
    """Time, timers, threads, disks, network and chance for one node, on its event loop."""

    monotonic: Callable[[], float]
    """The clock for timeouts alone, which is quicker."""
    stopwatch: Callable[[], float]
    """A clock for how long work takes: it bounds turns and feeds metrics, and decides nothing."""

    async def sleep(self, seconds: float, /, wake: asyncio.Event | None = None) -> None:
        """Wait so long, or until `wake` is set."""

    def call_from_thread(self, do: Callable[[], object], /) -> None:
        """Have something done on the event loop; from any thread."""

    def threads(self, count: int, purpose: str) -> Threads:
        """Return threads that are started when they are needed."""

    def waits_for_device(self, work: Callable[[], object]) -> bool:
        """Do some work in the calling thread; whether that was waiting for most of the time."""

    def open_disk(self, root: str, *, open_files_max: int = 512) -> StoredDisk:
        """Return the disk of a log directory, which is made if need be; `DiskError`."""

    def lock_directory(self, root: str) -> HeldLock:
        """Have a log directory alone; `DirectoryInUseError` says which process has it."""

    def open_files_max(self, wanted: int, directories: int) -> int:
        """Return how many files of each log directory may stay open."""

    def listen(
        self, host: str, port: int, *, backlog: int, receive_bytes: int
    ) -> Sequence[ListeningSocket]:
        """Listen on a host's addresses, all on one port, 0 for any; `OSError`."""

    async def resolve(self, host: str) -> Sequence[str]:
        """Return the addresses of a host; `OSError` or `UnicodeError` if it has none."""

    def file_sender(
        self, transport: asyncio.Transport, gone: Callable[[], None], fail: Callable[[], None]
    ) -> RegionSender:
        """Return what sends regions of files through a transport, where disks have such.

        `gone` is called when the last byte is sent later, `fail` when the rest cannot be.
        """
