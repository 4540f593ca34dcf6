"""The environment of a simulated process: fulfils a node's port by the world."""

import asyncio
import errno
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from moldau.broker.ports import Timer
from moldau.kernel.clock import Instant
from moldau.runtime.directory_lock import DirectoryInUseError
from moldau.runtime.waiting import sleep
from moldau.simulation.process_disk import ProcessDisk
from moldau.simulation.scheduler import MICROSECOND, MILLISECOND
from moldau.simulation.threads import SimulatedThreads
from moldau.simulation.transport import SimulatedTransport
from moldau.simulation.virtual_socket import VirtualSocket

if TYPE_CHECKING:
    from moldau.simulation.machine import Process
    from moldau.simulation.network import VirtualListener

LONG_STEP_RATE = 0.02
"""How many steps of long work take longer than a turn should."""


class SimulatedEnvironment:
    """Time, timers, threads, disks, network and chance for one process of a world.

    Nothing here has effect when the process is no more.
    """

    def __init__(self, process: "Process") -> None:
        self._process = process
        self._loop = process.loop
        self._clock = process.machine.clock
        self._random = process.random
        self.monotonic: Callable[[], float] = self._loop.time
        """The clock for timeouts alone."""
        self.stopwatch: Callable[[], float] = self._stopwatch
        """The clock for how long work takes."""

    # Time and chance.

    def now(self) -> Instant:
        """Return both clocks."""
        return self._clock.instant(self._loop.now_ns)

    def _stopwatch(self) -> float:
        """Let some time pass, and return the clock: work takes as long as the seed likes."""
        chance = self._random.random()
        long = int(5 * MILLISECOND * self._random.random()) if chance < LONG_STEP_RATE else 0
        self._loop.spend(int(10 * MICROSECOND * chance) + long)
        return self._loop.time()

    async def sleep(self, seconds: float, /, wake: asyncio.Event | None = None) -> None:
        """Wait so long, or until `wake` is set."""
        await sleep(seconds, wake)

    def at(self, monotonic: float, do: Callable[[], None]) -> Timer:
        """Have something done at a time."""
        return self._loop.call_at(monotonic, do)

    def entropy(self, size: int) -> bytes:
        """Return random bytes."""
        return self._random.randbytes(size)

    # Threads.

    def call_from_thread(self, do: Callable[[], object], /) -> None:
        """Have something done on the event loop; from any thread."""
        reports = self._process.reports
        if reports is not None:
            reports.append(do)
        else:
            self._loop.call_soon(do)

    def threads(self, count: int, purpose: str) -> SimulatedThreads:
        """Return threads of this process."""
        return SimulatedThreads(self._process, count, purpose, self._random)

    def waits_for_device(self, work: Callable[[], object]) -> bool:
        """Do some work in the calling thread; whether it waited is for the seed to say."""
        work()
        return self._random.random() < 0.5

    # Disks.

    def open_disk(self, root: str, *, open_files_max: int = 512) -> ProcessDisk:  # noqa: ARG002
        """Return the disk of a log directory, which is made if need be; `DiskError`."""
        return ProcessDisk(self._process, root, self._process.machine.disk(root))

    def lock_directory(self, root: str) -> "SimulatedLock":
        """Have a log directory alone; `DirectoryInUseError` says which process has it."""
        locks = self._process.machine.locks
        holder = locks.get(root)
        if holder is not None and not holder.is_revoked:
            raise DirectoryInUseError(root, f"process {holder.name}")
        locks[root] = self._process
        return SimulatedLock(self._process, root)

    def open_files_max(self, wanted: int, directories: int) -> int:  # noqa: ARG002
        """Return how many files of each log directory may stay open."""
        return wanted

    # The network.

    def listen(
        self,
        host: str,
        port: int,
        *,
        backlog: int,
        receive_bytes: int,  # noqa: ARG002
    ) -> Sequence["SimulatedListeningSocket"]:
        """Listen on a host's addresses, all on one port, 0 for any; `OSError`."""
        process = self._process
        network = process.machine.world.network
        is_any = host in ("", "0.0.0.0", "::")
        if not is_any and network.resolve(host, process.host) is not process.host:
            raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
        listener = network.listen(process, port, backlog)
        return [SimulatedListeningSocket(process, listener)]

    async def resolve(self, host: str) -> Sequence[str]:
        """Return the addresses of a host; `OSError` or `UnicodeError` if it has none."""
        process = self._process
        await asyncio.sleep(0)
        return [process.machine.world.network.resolve(host, process.host).address]

    async def connect(
        self, protocol: asyncio.BaseProtocol, host: str, port: int
    ) -> SimulatedTransport:
        """Connect to another machine; `OSError`."""
        process = self._process
        socket = await process.machine.world.network.connect(process, host, port)
        transport = process.transport(socket)
        await transport.begin(protocol)
        return transport

    def file_sender(self, *_: object) -> Any:
        """Refuse: a world's disks have no descriptors, so nothing is sent from them."""
        raise AssertionError("disks of a world have no open files")


class SimulatedLock:
    """A log directory that a process has alone."""

    def __init__(self, process: "Process", root: str) -> None:
        self._process = process
        self._root = root

    def release(self) -> None:
        """Let others have the directory."""
        locks = self._process.machine.locks
        if locks.get(self._root) is self._process:
            del locks[self._root]


class SimulatedListeningSocket:
    """An address that clients dial."""

    def __init__(self, process: "Process", listener: "VirtualListener") -> None:
        self._process = process
        self._listener = listener
        self.port: int = listener.port
        self.when_ready = listener.when_ready
        self.close = listener.close

    def accept(self, *, send_bytes: int) -> "SimulatedAcceptedSocket | None":  # noqa: ARG002
        """Return the next connection, None if no client waits."""
        socket = self._listener.take()
        return None if socket is None else SimulatedAcceptedSocket(self._process, socket)


class SimulatedAcceptedSocket:
    """A connection that a client has opened, before its protocol reads from it."""

    def __init__(self, process: "Process", socket: VirtualSocket) -> None:
        self._process = process
        self._socket = socket
        self.peer_host = socket.peer.host.address
        self.peer_port = socket.peer.port
        self.local_host = socket.host.address

    async def begin(self, protocol: asyncio.BufferedProtocol) -> None:
        """Have a protocol serve the connection; `OSError` if the client has gone."""
        if self._socket.error is not None:
            self.close()
            raise self._socket.error
        await self._process.transport(self._socket).begin(protocol)

    def close(self) -> None:
        """Hang up."""
        if not self._process.is_revoked:
            self._process.sockets.pop(self._socket, None)
            self._socket.abort()
