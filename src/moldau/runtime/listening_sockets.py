"""The system's sockets: opening the addresses that a listener names, and accepting clients."""

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import Final

PORT_ATTEMPTS_MAX: Final = 32
_NO_SUCH_FAMILY: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


class AcceptedConnection:
    """A connection that a client has opened, before its protocol reads from it."""

    def __init__(self, accepted: socket.socket, peer: tuple[str, int], *, send_bytes: int) -> None:
        """Set the options of the socket; `OSError` if the client has gone."""
        accepted.settimeout(0)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if send_bytes > 0:
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_bytes)
        self.peer_host, self.peer_port = peer
        self.local_host: str = accepted.getsockname()[0]
        self.socket = accepted

    async def begin(self, protocol: asyncio.BufferedProtocol) -> None:
        """Have a protocol serve the connection; `OSError` if the client has gone."""
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(lambda: protocol, self.socket)

    def close(self) -> None:
        """Hang up."""
        self.socket.close()


class MachineSocket:
    """An address that clients dial."""

    def __init__(self, listening: socket.socket) -> None:
        self.socket = listening
        self.port: int = listening.getsockname()[1]

    def accept(self, *, send_bytes: int) -> AcceptedConnection | None:
        """Return the next connection, None if no client waits; `OSError` if that fails."""
        while True:
            try:
                accepted, peer = self.socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return None
            try:
                return AcceptedConnection(accepted, peer[:2], send_bytes=send_bytes)
            except OSError:
                accepted.close()  # gone before it was here

    def when_ready(self, do: Callable[[], None] | None) -> None:
        """Call on the event loop while clients wait to be accepted; None: call no more."""
        loop = asyncio.get_running_loop()
        if do is None:
            loop.remove_reader(self.socket)
        else:
            loop.add_reader(self.socket, do)

    def close(self) -> None:
        """Listen no more; clients that wait are refused."""
        self.socket.close()


def listen(host: str, port: int, *, backlog: int, receive_bytes: int) -> list[MachineSocket]:
    """Listen on a host's addresses, all on the same port; port 0 is any that is free.

    `localhost` is 127.0.0.1 and ::1, where there is IPv6, because some clients try that first.
    No host is all addresses of the machine.
    """
    for attempt in range(PORT_ATTEMPTS_MAX):
        opened: list[socket.socket] = []
        try:
            for family, address in _addresses(host):
                chosen = opened[0].getsockname()[1] if opened else port
                try:
                    opened.append(_open(family, address, chosen, receive_bytes))
                except OSError as error:
                    if not (opened and error.errno in _NO_SUCH_FAMILY):
                        raise
            for each in opened:
                each.listen(backlog)
        except OSError as error:
            for each in opened:
                each.close()
            # Any free port of one address may be taken at the other.
            is_unlucky = port == 0 and len(opened) > 0 and error.errno == errno.EADDRINUSE
            if not is_unlucky or attempt == PORT_ATTEMPTS_MAX - 1:
                raise
        else:
            return [MachineSocket(each) for each in opened]
    raise AssertionError("the last attempt returns or raises")


def _addresses(host: str) -> list[tuple[socket.AddressFamily, str]]:
    if host.lower() == "localhost":
        return [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
    if not host:
        return [(socket.AF_INET6, "::") if socket.has_dualstack_ipv6() else (socket.AF_INET, "")]
    family, _, _, _, address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
    return [(family, str(address[0]))]


def _open(
    family: socket.AddressFamily, address: str, port: int, receive_bytes: int
) -> socket.socket:
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.settimeout(0)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, address != "::")
        if receive_bytes > 0:
            # Accepted sockets inherit it, early enough for TCP's window scale.
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        opened.bind((address, port))
    except OSError:
        opened.close()
        raise
    return opened
