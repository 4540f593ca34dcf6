"""Connections as the systems of two hosts keep them: bytes in order, complete, and late."""

import errno
import os
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Final, Protocol, TypeAlias
from zlib import crc32

from moldau.simulation.scheduler import MILLISECOND, SECOND, Scheduler
from moldau.simulation.trace import Trace

CAPACITIES: Final = (4 << 10, 64 << 10, 256 << 10, 1 << 20)
"""Bytes that the two systems hold of one direction; the seed chooses for each connection."""
SPLIT_RATE: Final = 0.1
"""How many writes arrive in more than one piece."""
RETRY_NS: Final = 200 * MILLISECOND
RETRY_NS_MAX: Final = 3 * SECOND
"""Shorter than any system's, so that the laws about progress can be strict."""
SILENCE_NS_MAX: Final = 900 * SECOND
"""After so long without an acknowledgement a connection is given up, as Linux does it."""

FIN: Final = b""
RESET: Final = None
WireSegment: TypeAlias = bytes | None
"""Bytes, the end of them, or a reset."""


class Way(Protocol):
    """A direction between two hosts."""

    is_cut: bool

    def delay(self, size: int) -> int:
        """Return how long so many bytes take this time."""


class SocketHost(Protocol):
    """A host, as far as its sockets go."""

    name: str
    address: str
    is_up: bool
    sockets: dict["VirtualSocket", None]


class SocketNetwork(Protocol):
    """What sockets need of the network."""

    scheduler: Scheduler
    trace: Trace
    random: Random


class VirtualSocket:
    """One end of a connection, as its host's system has it; it outlives its process."""

    def __init__(self, network: SocketNetwork, host: SocketHost, port: int) -> None:
        self.host = host
        self.port = port
        self.peer: VirtualSocket
        self.out: Pipe
        self.received: deque[bytes] = deque()
        """What has arrived and was not read."""
        self.is_ended = False
        """Whether the peer sends no more."""
        self.error: OSError | None = None
        """Why the connection is no more."""
        self.is_closed = False
        """Whether the process has let go of it."""
        self.is_forgotten = False
        """Whether the host has lost power since."""
        self.readable: Callable[[], None] | None = None
        """Is called when there is something to read, an end or an error."""
        self.writable: Callable[[], None] | None = None
        """Is called when there is room again; once."""
        self._network = network
        host.sockets[self] = None

    def read(self, size: int) -> bytes:
        """Take up to `size` bytes of what has arrived."""
        piece = self.received.popleft()
        if len(piece) > size:
            self.received.appendleft(piece[size:])
            piece = piece[:size]
        self.peer.out.acknowledge(len(piece))
        return piece

    def end(self, now_ns: int) -> None:
        """Send no more."""
        self.out.send(FIN, now_ns)

    def close(self, now_ns: int) -> None:
        """Let go: what was sent arrives; a peer whose bytes were not read is told."""
        if not self.is_closed:
            self.is_closed = True
            self.out.send(RESET if self.received else FIN, now_ns)
            self._leave()

    def abort(self) -> None:
        """Let go, and tell the peer at once."""
        if not self.is_closed:
            self.is_closed = True
            self.out.send(RESET, self._network.scheduler.now)
            self._leave()

    def reset(self) -> None:
        """Lose the connection here, as when a reset has arrived."""
        self.fail(ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))

    def fail(self, error: OSError) -> None:
        """Lose the connection here."""
        if self.error is None and not self.is_forgotten:
            self.error = error
            self.out.stop()
            self._leave()
            self._tell()

    def forget(self) -> None:
        """Be gone with the host's power."""
        self.is_forgotten = True
        self.out.stop()

    def arrived(self, segment: WireSegment) -> None:
        """Take what has come over the network."""
        if self.is_forgotten or self.is_closed or self.error is not None:
            if segment:
                self.peer.reset()  # the answer of a system that knows no such connection
            return
        if segment is RESET:
            self.reset()
            return
        if segment == FIN:
            self.is_ended = True
        else:
            self.received.append(segment)
        self._tell()

    def _tell(self) -> None:
        if self.readable is not None:
            self.readable()

    def _leave(self) -> None:
        self.host.sockets.pop(self, None)


class Pipe:
    """One direction of a connection."""

    def __init__(
        self,
        network: SocketNetwork,
        ends: tuple[VirtualSocket, VirtualSocket],
        ways: tuple[Way, Way],
        capacity: int,
    ) -> None:
        self._scheduler = network.scheduler
        self._trace = network.trace
        self._random = network.random.random
        self._source, self._target = ends
        self._way, self._back = ways
        self._name = f"{self._source.host.name}:{self._source.port}:{self._target.port}"
        self._capacity = capacity
        self._held = 0
        self._arrives_ns = 0
        self._is_stopped = False
        self._stuck: deque[WireSegment] = deque()
        self._retry_ns = RETRY_NS
        self._stuck_since = 0

    @staticmethod
    def join(
        network: SocketNetwork, ends: tuple[VirtualSocket, VirtualSocket], ways: tuple[Way, Way]
    ) -> None:
        """Connect two sockets: the second way is the first one's back."""
        first, second = ends
        there, back = ways
        first.peer, second.peer = second, first
        choose = network.random.choice
        first.out = Pipe(network, (first, second), (there, back), choose(CAPACITIES))
        second.out = Pipe(network, (second, first), (back, there), choose(CAPACITIES))

    @property
    def room(self) -> int:
        """Bytes that the system takes now."""
        return 0 if self._is_stopped else self._capacity - self._held

    def send(self, segment: WireSegment, now_ns: int) -> None:
        """Take bytes, no more than there is room for, or the end, or a reset."""
        if self._is_stopped:
            return
        if not segment:
            self._launch(segment, now_ns)
            return
        self._held += len(segment)
        while len(segment) > 1 and self._random() < SPLIT_RATE:
            cut = 1 + int(self._random() * (len(segment) - 1))
            self._launch(segment[:cut], now_ns)
            segment = segment[cut:]
        self._launch(segment, now_ns)

    def acknowledge(self, size: int) -> None:
        """The peer has read so much: there is room again, a little later."""
        if self._source.writable is not None or self._back.is_cut:
            self._scheduler.after(self._back.delay(40), self._acknowledged, size, RETRY_NS)
        else:
            self._held -= size

    def stop(self) -> None:
        """Send nothing more of what the system still holds."""
        self._is_stopped = True
        self._stuck.clear()

    def _acknowledged(self, size: int, retry_ns: int) -> None:
        if self._back.is_cut:
            later = min(2 * retry_ns, RETRY_NS_MAX)
            self._scheduler.after(retry_ns, self._acknowledged, size, later)
            return
        self._held -= size
        writable, self._source.writable = self._source.writable, None
        if writable is not None:
            writable()

    def _launch(self, segment: WireSegment, now_ns: int) -> None:
        size = len(segment) if segment else 0
        self._arrives_ns = max(self._arrives_ns + 1, now_ns + self._way.delay(size))
        self._scheduler.at(self._arrives_ns, self._arrive, segment)

    def _arrive(self, segment: WireSegment) -> None:
        if self._is_stopped and segment is not RESET:
            return
        if self._stuck or self._way.is_cut or not self._target.host.is_up:
            if not self._stuck:
                self._stuck_since = self._scheduler.now
                self._retry_ns = RETRY_NS
                self._scheduler.after(self._retry_ns, self._retry)
            self._stuck.append(segment)
            return
        self._deliver(segment)

    def _deliver(self, segment: WireSegment) -> None:
        if segment:
            detail = f"{len(segment)} {crc32(segment):08x}"
        else:
            detail = "reset" if segment is RESET else "end"
        self._trace.note(self._target.host.name, "arrival", f"{self._name} {detail}")
        self._target.arrived(segment)

    def _retry(self) -> None:
        if not self._stuck:
            return
        if self._way.is_cut or not self._target.host.is_up:
            if self._scheduler.now - self._stuck_since > SILENCE_NS_MAX:
                self._stuck.clear()
                self._source.fail(TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)))
                return
            self._retry_ns = min(2 * self._retry_ns, RETRY_NS_MAX)
            self._scheduler.after(self._retry_ns, self._retry)
            return
        stuck, self._stuck = self._stuck, deque()
        for segment in stuck:
            self._deliver(segment)
