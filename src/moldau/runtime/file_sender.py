"""Responses with regions of files: their bytes go from the page cache to the socket by sendfile."""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from moldau._native.files import FileRegion, PieceQueue, pull_in
from moldau.kernel.disk import Buffer

_log: Final = logging.getLogger(__name__)

SENT_AT_ONCE_MAX: Final = (1 << 20) + (64 << 10)
"""Bytes sent to one client before the others have their turn.

A megabyte goes whole, with its head: what is left over has to wait until the socket is writable.
"""


class FileSender:
    """Sends pieces, regions of files among them, through a duplicate of a socket's descriptor.

    uvloop has no sendfile, and keeps others from waiting until a transport's own descriptor is
    writable. The owner queues pieces only when all before them have gone, and calls `go_on` when
    the transport holds nothing any more. `gone` is called when the last byte is sent later; `fail`
    when the rest cannot be: then the connection ends, for a frame that was begun cannot be taken
    back.
    """

    __slots__ = ("_fail", "_gone", "_is_pulling", "_is_waiting", "_loop", "_queue", "_socket")

    def __init__(
        self, transport: asyncio.Transport, gone: Callable[[], None], fail: Callable[[], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        descriptor = os.dup(transport.get_extra_info("socket").fileno())
        self._socket: socket.socket | None = socket.socket(fileno=descriptor)
        self._socket.settimeout(0)
        self._gone = gone
        self._fail = fail
        self._queue = PieceQueue()
        self._is_waiting = False  # until the socket takes more
        self._is_pulling = False  # while a thread reads what comes next into the page cache

    @property
    def unsent_bytes(self) -> int:
        """How much of what was queued is not sent."""
        return self._queue.unsent_bytes

    def queue(self, pieces: list[Buffer | FileRegion], size: int) -> None:
        """Have pieces sent; nothing of what was queued before may be left."""
        self._queue.add(pieces, size)

    def go_on(self) -> bool:
        """Send what the socket takes now, and the rest later; say whether all is sent."""
        if self._socket is None or self._is_pulling:
            return False
        try:
            is_sent = self._queue.send(self._socket.fileno(), SENT_AT_ONCE_MAX)
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.ECONNRESET):
                _log.error("a response was cut short: %s", error)
            self._fail()
            return False
        if is_sent is None:
            self._pull()
        elif not is_sent and not self._is_waiting:
            self._is_waiting = True
            self._loop.add_writer(self._socket.fileno(), self._go_on_later)
        return is_sent is True

    def _go_on_later(self) -> None:
        if self.go_on():
            self._wait_no_more()
            self._gone()

    def _wait_no_more(self) -> None:
        if self._is_waiting and self._socket is not None:
            self._is_waiting = False
            self._loop.remove_writer(self._socket.fileno())

    def _pull(self) -> None:
        """Have a thread wait for the device."""
        self._wait_no_more()
        self._is_pulling = True
        pulled = self._loop.run_in_executor(
            None, _pull_in, *self._queue.next_range(SENT_AT_ONCE_MAX)
        )
        pulled.add_done_callback(self._pulled)

    def _pulled(self, pulled: asyncio.Future[int]) -> None:
        self._is_pulling = False
        if self._socket is None:
            return
        if pulled.exception() is not None or not pulled.result():
            _log.error("a response was cut short: %s", pulled.exception() or "the file is shorter")
            self._fail()
        else:
            self._queue.is_pulled = True
            self._go_on_later()

    def close(self) -> None:
        """Let go of the connection, which this descriptor would keep open."""
        self._wait_no_more()
        self._queue.clear()
        if self._socket is not None:
            with suppress(OSError):  # the peer was quicker
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
            self._socket = None


def _pull_in(region: FileRegion, position: int, size: int) -> int:
    """Hold the region, and with it the file, while a thread reads."""
    return pull_in(region.file.fd, position, size)
