"""Responses with regions of files: their bytes go from the page cache to the socket by sendfile."""

import asyncio
import errno
import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from moldau._native.files import FileRegion, is_resident, pull_in
from moldau.kernel.disk import Buffer

_log: Final = logging.getLogger(__name__)

MORE: Final[int] = getattr(socket, "MSG_MORE", 0)
SENT_AT_ONCE_MAX: Final = 1 << 20
"""Bytes sent to one client before the others have their turn."""


class FileSender:
    """Sends pieces, regions of files among them, through a duplicate of a socket's descriptor.

    uvloop has no sendfile, and keeps others from waiting until a transport's own descriptor is
    writable. The owner queues pieces only when all before them have gone, and calls `go_on` when
    the transport holds nothing any more. `gone` is called when the last byte is sent; `fail` when
    the rest cannot be: then the connection ends, for a frame that was begun cannot be taken back.
    """

    __slots__ = (
        "_done",
        "_fail",
        "_gone",
        "_is_pulled",
        "_is_pulling",
        "_is_waiting",
        "_loop",
        "_pieces",
        "_socket",
        "unsent_bytes",
    )

    def __init__(
        self, transport: asyncio.Transport, gone: Callable[[], None], fail: Callable[[], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        descriptor = os.dup(transport.get_extra_info("socket").fileno())
        self._socket: socket.socket | None = socket.socket(fileno=descriptor)
        self._socket.settimeout(0)
        self._gone = gone
        self._fail = fail
        self._pieces: deque[Buffer | FileRegion] = deque()
        self._done = 0  # bytes of the first piece
        self._is_waiting = False  # until the socket takes more
        self._is_pulling = False  # while a thread reads what comes next into the page cache
        self._is_pulled = False  # once it has: what it read is sent, however much that is
        self.unsent_bytes = 0

    def queue(self, pieces: Sequence[Buffer | FileRegion], size: int) -> None:
        """Have pieces sent; nothing of what was queued before may be left."""
        assert not self._pieces, "a later answer waits"
        self._pieces.extend(pieces)
        self.unsent_bytes = size

    def go_on(self) -> None:
        """Send as much as the socket takes now, and the rest when it takes more."""
        if self._socket is None or self._is_pulling or not self._pieces:
            return
        try:
            self._send(self._socket)
        except BlockingIOError:
            self._wait()
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.ECONNRESET):
                _log.error("a response was cut short: %s", error)
            self._fail()

    def _send(self, to: socket.socket) -> None:
        budget = SENT_AT_ONCE_MAX
        while self._pieces:
            if budget <= 0:
                self._wait()
                return
            piece = self._pieces[0]
            rest = len(piece) - self._done
            if isinstance(piece, FileRegion):
                size = min(rest, budget)
                position = piece.position + self._done
                if not self._is_pulled and not is_resident(piece.file.fd, position, size):
                    self._pull(piece, position, size)
                    return
                self._is_pulled = False
                sent = os.sendfile(to.fileno(), piece.file.fd, position, size)
                if not sent:
                    raise OSError(errno.EIO, f"{piece} ends at {position}")
            else:
                data = memoryview(piece)[self._done :] if self._done else piece
                sent = to.send(data, MORE if len(self._pieces) > 1 else 0)
            budget -= sent
            self.unsent_bytes -= sent
            self._done += sent
            if sent == rest:
                self._pieces.popleft()
                self._done = 0
        self._wait_no_more()
        self._gone()

    def _wait(self) -> None:
        if not self._is_waiting and self._socket is not None:
            self._is_waiting = True
            self._loop.add_writer(self._socket.fileno(), self.go_on)

    def _wait_no_more(self) -> None:
        if self._is_waiting and self._socket is not None:
            self._is_waiting = False
            self._loop.remove_writer(self._socket.fileno())

    def _pull(self, region: FileRegion, position: int, size: int) -> None:
        """Have a thread wait for the device."""
        self._wait_no_more()
        self._is_pulling = True
        pulled = self._loop.run_in_executor(None, _pull_in, region, position, size)
        pulled.add_done_callback(self._pulled)

    def _pulled(self, pulled: asyncio.Future[int]) -> None:
        self._is_pulling = False
        if self._socket is None:
            return
        if pulled.exception() is not None or not pulled.result():
            _log.error("a response was cut short: %s", pulled.exception() or "the file is shorter")
            self._fail()
        else:
            self._is_pulled = True
            self.go_on()

    def close(self) -> None:
        """Let go of the connection, which this descriptor would keep open."""
        self._wait_no_more()
        self._pieces.clear()
        self.unsent_bytes = 0
        if self._socket is not None:
            with suppress(OSError):  # the peer was quicker
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
            self._socket = None


def _pull_in(region: FileRegion, position: int, size: int) -> int:
    """Hold the region, and with it the file, while a thread reads."""
    return pull_in(region.file.fd, position, size)
