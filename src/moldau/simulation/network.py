"""The network of a world: hosts, the ways between them, and what goes wrong on those."""

import errno
import os
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Final, Protocol

from moldau.simulation.loop import SimulatedLoop
from moldau.simulation.scheduler import MICROSECOND, MILLISECOND, SECOND, Chance, Scheduler
from moldau.simulation.trace import Trace
from moldau.simulation.virtual_socket import Pipe, VirtualSocket

FIRST_FREE_PORT: Final = 40_000
KNOCKS_MAX: Final = 7
"""How often a client knocks, the first wait being a second and each twice the one before."""


class NetworkLink:
    """The way from one host to another, in one direction."""

    def __init__(self, random: Random, latency_ns: int) -> None:
        self.is_cut = False
        """Whether nothing arrives."""
        self.latency_ns = latency_ns
        """The least time a segment takes."""
        self.tail_rate = 0.01
        """How many segments are lost at first, and so take much longer."""
        self.tail_ns = 40 * MILLISECOND
        """How much longer these take on average."""
        self._random = random.random

    def delay(self, size: int) -> int:
        """Return how long so many bytes take this time."""
        chance = self._random
        delay = self.latency_ns + int(self.latency_ns * chance()) + size
        if chance() < self.tail_rate:
            delay += int(2 * self.tail_ns * chance())
        return delay


class NetworkHost:
    """A machine as the network sees it."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self.is_up = True
        """A host that is not answers nothing at all."""
        self.refuses = False
        """Whether it refuses all connections."""
        self.listeners: dict[int, VirtualListener] = {}
        self.sockets: dict[VirtualSocket, None] = {}
        self._next_port = FIRST_FREE_PORT

    def free_port(self) -> int:
        """Return a port that was never used."""
        self._next_port += 1
        return self._next_port

    def lose_power(self) -> None:
        """Forget all connections without telling any peer."""
        self.is_up = False
        self.listeners.clear()
        sockets, self.sockets = self.sockets, {}
        for each in sockets:
            each.forget()


class SocketOwner(Protocol):
    """A process, as far as its sockets go."""

    loop: SimulatedLoop
    host: NetworkHost
    sockets: dict[VirtualSocket, None]
    listeners: dict["VirtualListener", None]


class VirtualListener:
    """A port that a process listens on; fulfils the node's `ListeningSocket`."""

    def __init__(self, owner: SocketOwner, port: int, backlog: int) -> None:
        self.port = port
        self._owner = owner
        self._backlog = max(1, backlog)
        self._waiting: deque[VirtualSocket] = deque()
        self._do: Callable[[], None] | None = None
        self._is_due = False

    @property
    def is_full(self) -> bool:
        """Whether no further client may wait."""
        return len(self._waiting) >= self._backlog

    def offer(self, socket: VirtualSocket) -> None:
        """Have a client wait until it is accepted."""
        self._waiting.append(socket)
        self._signal()

    def take(self) -> VirtualSocket | None:
        """Return the socket of the next client, None if none waits."""
        if not self._waiting or self._owner.loop.is_revoked:
            return None
        socket = self._waiting.popleft()
        self._owner.sockets[socket] = None
        return socket

    def when_ready(self, do: Callable[[], None] | None) -> None:
        """Call on the event loop while clients wait to be accepted; None: call no more."""
        self._do = do
        self._signal()

    def close(self) -> None:
        """Listen no more; clients that wait are refused."""
        if self._owner.loop.is_revoked:
            return
        self.abandon()
        self._owner.listeners.pop(self, None)

    def abandon(self) -> None:
        """Close as the system does it for a process that is no more."""
        self._do = None
        listeners = self._owner.host.listeners
        if listeners.get(self.port) is self:
            del listeners[self.port]
        while self._waiting:
            self._waiting.popleft().abort()

    def _signal(self) -> None:
        if self._do is not None and self._waiting and not self._is_due:
            self._is_due = True
            self._owner.loop.call_soon(self._tell)

    def _tell(self) -> None:
        self._is_due = False
        if self._do is not None and self._waiting:
            self._do()
            self._signal()


class Network:
    """All hosts, by name and address."""

    def __init__(self, scheduler: Scheduler, chance: Chance, trace: Trace) -> None:
        self.scheduler = scheduler
        self.trace = trace
        self.random = chance.stream("network")
        self._hosts: dict[str, NetworkHost] = {}
        self._links: dict[tuple[str, str], NetworkLink] = {}

    def host(self, name: str) -> NetworkHost:
        """Add a host with an address of its own."""
        address = f"10.0.0.{len(self._hosts) // 2 + 1}"
        host = NetworkHost(name, address)
        self._hosts[name] = self._hosts[address] = host
        return host

    def link(self, source: str, target: str) -> NetworkLink:
        """Return the way from one host to another, by their names."""
        found = self._links.get((source, target))
        if found is None:
            latency = 5 * MICROSECOND if source == target else 100 * MICROSECOND
            found = self._links[source, target] = NetworkLink(self.random, latency)
        return found

    def cut(self, source: str, target: str) -> None:
        """Let nothing through in one direction, without a word to either side."""
        self.trace.note("world", "cut", f"{source} > {target}")
        self.link(source, target).is_cut = True

    def heal(self, source: str, target: str) -> None:
        """Let everything through in one direction."""
        self.trace.note("world", "heal", f"{source} > {target}")
        self.link(source, target).is_cut = False

    def reset(self, host: str, peer: str) -> int:
        """Reset the connections between two hosts; return how many there were."""
        sockets = [
            each for each in self._hosts[host].sockets if each.peer.host is self._hosts[peer]
        ]
        for socket in sockets:
            socket.reset()
            socket.peer.reset()
        return len(sockets)

    def resolve(self, name: str, asker: NetworkHost) -> NetworkHost:
        """Return the host of a name or address; `OSError` if there is none."""
        if name in ("localhost", "127.0.0.1"):
            return asker
        found = self._hosts.get(name)
        if found is None:
            raise OSError(-2, "Name or service not known")
        return found

    def listen(self, owner: SocketOwner, port: int, backlog: int) -> VirtualListener:
        """Listen on a port of a process's host, 0 for any; `OSError`."""
        host = owner.host
        if port == 0:
            port = host.free_port()
        if port in host.listeners:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        listener = VirtualListener(owner, port, backlog)
        host.listeners[port] = listener
        owner.listeners[listener] = None
        return listener

    async def connect(self, owner: SocketOwner, name: str, port: int) -> VirtualSocket:
        """Return a socket that is connected to another host; `OSError`."""
        dial = _Dial(self, owner, self.resolve(name, owner.host), port)
        try:
            socket: VirtualSocket = await dial.answered
        except BaseException:
            dial.give_up()
            raise
        return socket


class _Dial:
    """A client's attempt to connect, until it is answered."""

    def __init__(
        self, network: Network, owner: SocketOwner, target: NetworkHost, port: int
    ) -> None:
        self._network = network
        self._owner = owner
        self._target = target
        self._port = port
        self._there = network.link(owner.host.name, target.name)
        self._back = network.link(target.name, owner.host.name)
        self._knocks = 0
        self._socket: VirtualSocket | None = None
        self.answered = owner.loop.create_future()
        self._knock()

    def give_up(self) -> None:
        """The caller waits no more."""
        if self._socket is not None:
            self._socket.abort()

    def _knock(self) -> None:
        if self._is_over:
            return
        if self._knocks == KNOCKS_MAX:
            text = os.strerror(errno.ETIMEDOUT)
            self._answer(TimeoutError(errno.ETIMEDOUT, text))
            return
        network = self._network
        wait = SECOND << self._knocks
        self._knocks += 1
        now = self._owner.loop.now_ns
        network.scheduler.at(now + self._there.delay(60), self._arrive, self._knocks)
        network.scheduler.at(now + wait, self._knock_again, self._knocks)

    def _knock_again(self, knocks: int) -> None:
        if self._knocks == knocks and self._socket is None:
            self._knock()

    @property
    def _is_over(self) -> bool:
        return self.answered.done() or self._owner.loop.is_revoked

    def _arrive(self, knocks: int) -> None:
        if self._socket is not None or self._knocks != knocks or self._is_over:
            return
        if self._there.is_cut or self._back.is_cut or not self._target.is_up:
            return
        listener = None if self._target.refuses else self._target.listeners.get(self._port)
        back = self._back.delay(60)
        if listener is None:
            text = os.strerror(errno.ECONNREFUSED)
            refused = ConnectionRefusedError(errno.ECONNREFUSED, text)
            self._network.scheduler.after(back, self._answer, refused)
        elif not listener.is_full:
            ours = VirtualSocket(self._network, self._owner.host, self._owner.host.free_port())
            theirs = VirtualSocket(self._network, self._target, self._port)
            Pipe.join(self._network, (ours, theirs), (self._there, self._back))
            self._socket = ours
            listener.offer(theirs)
            self._network.trace.note(
                self._owner.host.name, "connect", f"{ours.port} to {self._target.name}:{self._port}"
            )
            self._network.scheduler.after(back, self._connected)

    def _connected(self) -> None:
        assert self._socket is not None, "it was answered"
        if self._owner.loop.is_revoked:
            self._socket.abort()
        elif not self.answered.done():
            self._owner.sockets[self._socket] = None
            self._owner.loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        if not self.answered.done():
            self.answered.set_result(self._socket)

    def _answer(self, error: OSError) -> None:
        if not self._is_over:
            self._owner.loop.call_soon(self._fail, error)

    def _fail(self, error: OSError) -> None:
        if not self.answered.done():
            self.answered.set_exception(error)
