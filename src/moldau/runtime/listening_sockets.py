"""Opening the addresses that a listener names."""

import errno
import socket
from typing import Final

PORT_ATTEMPTS_MAX: Final = 32
_NO_SUCH_FAMILY: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def open_sockets(host: str, port: int, *, backlog: int, receive_bytes: int) -> list[socket.socket]:
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
            return opened
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
