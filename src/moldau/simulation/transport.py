"""Transports over virtual connections, as mean as uvloop's: they read what is written late."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, Final, cast

from moldau.kernel.disk import Buffer
from moldau.simulation.loop import SimulatedLoop
from moldau.simulation.virtual_socket import VirtualSocket

READ_BYTES: Final = 256 << 10
HIGH_WATER_BYTES: Final = 64 << 10
SHORT_READ_RATE: Final = 0.05
"""How many reads get less than there is."""
BUSY_RATE: Final = 0.1
"""How often the system takes only a part of what it has room for, or nothing yet."""
LATE_FLUSH_RATE: Final = 0.1
LATE_FLUSH_SECONDS_MAX: Final = 0.002
POISON: Final = memoryview(bytes([0xDB]) * (64 << 10))
"""What a read leaves behind the bytes that have come, in memory that was offered for them."""
POISON_BYTES: Final = 4 << 10
"""How much of it most reads leave."""


class SimulatedTransport(asyncio.Transport):
    """A process's end of a connection.

    Writes are held by reference, and read only when the system takes them: memory that is used
    again too early shows up as wrong bytes. What is read is as much as the seed likes.
    """

    def __init__(
        self, loop: SimulatedLoop, socket: VirtualSocket, random: Random, gone: Callable[[], None]
    ) -> None:
        super().__init__()
        self._loop = loop
        self._socket = socket
        self._random = random.random
        self._gone = gone
        self._protocol: asyncio.BaseProtocol
        self._is_buffered = False
        self._held: deque[Buffer] = deque()
        self._held_bytes = 0
        self._high, self._low = HIGH_WATER_BYTES, HIGH_WATER_BYTES // 4
        self._is_protocol_paused = False
        self._is_reading = True
        self._is_read_due = False
        self._is_flush_due = False
        self._is_closing = False
        self._is_ending = False
        self._is_lost = False

    async def begin(self, protocol: asyncio.BaseProtocol) -> None:
        """Have a protocol serve the connection; returns when it was told so."""
        loop = self._loop
        self.set_protocol(protocol)
        begun = loop.create_future()
        loop.call_soon(protocol.connection_made, self)
        loop.call_soon(self._begin_reading)
        loop.call_soon(_settle, begun)
        await begun

    def _begin_reading(self) -> None:
        self._socket.readable = self._look
        self._look()

    # What a protocol asks.

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return addresses; there is no socket of the system."""
        socket = self._socket
        if name == "peername":
            return socket.peer.host.address, socket.peer.port
        if name == "sockname":
            return socket.host.address, socket.port
        return default

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Have another protocol serve the connection."""
        self._protocol = protocol
        self._is_buffered = isinstance(protocol, asyncio.BufferedProtocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol."""
        return self._protocol

    def is_closing(self) -> bool:
        """Whether it is closed, or will be when all is written."""
        return self._is_closing

    # Reading.

    def is_reading(self) -> bool:
        """Whether the protocol takes what arrives."""
        return self._is_reading and not self._is_closing

    def pause_reading(self) -> None:
        """Give the protocol nothing until `resume_reading`."""
        self._is_reading = False

    def resume_reading(self) -> None:
        """Give the protocol what arrives."""
        if not self._is_reading and not self._is_closing:
            self._is_reading = True
            self._look()

    def _look(self) -> None:
        """Read in the next turn if there is anything to read."""
        socket = self._socket
        if (
            (self._is_reading or socket.error is not None)
            and not self._is_read_due
            and (socket.received or socket.is_ended or socket.error is not None)
        ):
            self._is_read_due = True
            self._loop.call_soon(self._read)

    def _read(self) -> None:
        self._is_read_due = False
        socket = self._socket
        if self._is_lost:
            return
        if socket.received and self._is_reading and not self._is_closing:
            try:
                self._hand_over(socket)
            except Exception as error:  # noqa: BLE001 - as asyncio's own transports do
                self._loop.call_exception_handler(
                    {"message": "a protocol failed to take what was read", "exception": error}
                )
                self._lose(error)
                return
            self._look()
        elif socket.error is not None:
            self._lose(socket.error)
        elif socket.is_ended and self._is_reading and not self._is_closing:
            self._is_reading = False
            protocol = cast("asyncio.Protocol", self._protocol)
            if not protocol.eof_received():
                self.close()

    def _hand_over(self, socket: VirtualSocket) -> None:
        """Give the protocol some of the bytes that are there."""
        short = self._random() < SHORT_READ_RATE
        if not self._is_buffered:
            limit = 1 + int(self._random() * 100) if short else READ_BYTES
            pieces = []
            while limit and socket.received:
                pieces.append(socket.read(limit))
                limit -= len(pieces[-1])
            cast("asyncio.Protocol", self._protocol).data_received(b"".join(pieces))
            return
        protocol = cast("asyncio.BufferedProtocol", self._protocol)
        with memoryview(protocol.get_buffer(-1)) as buffer:
            limit = size = len(buffer)
            if not size:
                raise RuntimeError("get_buffer() returned an empty buffer")
            if short:
                limit = min(size, 1 + int(self._random() * 100))
            end = 0
            while end < limit and socket.received:
                piece = socket.read(limit - end)
                buffer[end : end + len(piece)] = piece
                end += len(piece)
            poison_bytes = len(POISON) if self._random() < SHORT_READ_RATE else POISON_BYTES
            poisoned = min(size - end, poison_bytes)
            buffer[end : end + poisoned] = POISON[:poisoned]
        protocol.buffer_updated(end)

    # Writing.

    def get_write_buffer_size(self) -> int:
        """Return how many bytes are held."""
        return self._held_bytes

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """Return when the protocol is told to write again, and to stop."""
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Say when the protocol is told to stop writing, and to go on."""
        if high is None:
            high = HIGH_WATER_BYTES if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high ({high}) must be >= low ({low}) must be >= 0")
        self._high, self._low = high, low

    def write(self, data: Buffer) -> None:
        """Send bytes, which must stay as they are until they are not held any more."""
        self._hold((data,))

    def writelines(self, list_of_data: Iterable[Buffer]) -> None:
        """Send several pieces, which must stay as they are until they are not held any more."""
        self._hold(list_of_data)

    def _hold(self, pieces: Iterable[Buffer]) -> None:
        if self._is_ending:
            raise RuntimeError("Cannot call write() after write_eof()")
        if self._is_closing or self._loop.is_revoked:
            return
        for piece in pieces:
            if not isinstance(piece, bytes | bytearray | memoryview):
                raise TypeError(f"not bytes: {type(piece).__name__}")
            if len(piece):
                self._held.append(piece)
                self._held_bytes += len(piece)
        if self._held_bytes > self._high and not self._is_flush_due:
            self._push()
        self._after_push()

    def can_write_eof(self) -> bool:
        """Return True."""
        return True

    def write_eof(self) -> None:
        """Send no more when all is sent; go on reading."""
        if self._is_ending or self._is_closing or self._loop.is_revoked:
            return
        self._is_ending = True
        if not self._held:
            self._socket.end(self._loop.now_ns)

    def _push(self) -> None:
        """Give the system what it takes now."""
        socket = self._socket
        room = socket.out.room
        if self._random() < BUSY_RATE:
            room = int(room * self._random() ** 4)
        now = self._loop.now_ns
        while self._held and room > 0:
            piece = self._held.popleft()
            taken = piece
            if len(piece) > room:
                view = memoryview(piece)
                taken = view[:room]
                self._held.appendleft(view[room:])
            data = bytes(taken)  # here, and not when it was written
            room -= len(data)
            self._held_bytes -= len(data)
            socket.out.send(data, now)

    def _after_push(self) -> None:
        """Tell the protocol what it wants to know, and come back for what is left."""
        if self._held:
            if self._held_bytes > self._high and not self._is_protocol_paused:
                self._is_protocol_paused = True
                self._protocol.pause_writing()
            if not self._is_flush_due:
                self._is_flush_due = True
                if not self._socket.out.room:
                    self._socket.writable = self._writable
                elif self._random() < LATE_FLUSH_RATE:
                    self._loop.call_later(self._random() * LATE_FLUSH_SECONDS_MAX, self._flush)
                else:
                    self._loop.call_soon(self._flush)
            return
        if self._is_protocol_paused:
            self._resume()
        if self._is_ending and not self._is_closing:
            self._socket.end(self._loop.now_ns)

    def _writable(self) -> None:
        self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flush_due = False
        if self._is_lost or not self._held:
            return
        self._push()
        if self._is_protocol_paused and 0 < self._held_bytes <= self._low:
            self._resume()
        self._after_push()
        if self._is_closing and not self._held:
            self._finish(None)

    def _resume(self) -> None:
        self._is_protocol_paused = False
        self._protocol.resume_writing()

    # Ending.

    def close(self) -> None:
        """Close when all that is held is sent."""
        if self._is_closing or self._loop.is_revoked:
            return
        self._is_closing = True
        self._is_reading = False
        if not self._held:
            self._loop.call_soon(self._finish, None)

    def abort(self) -> None:
        """Close at once; what is held is lost."""
        if not self._loop.is_revoked:
            self._lose(None)

    def _lose(self, error: Exception | None) -> None:
        """Close now; the protocol is told in the next turn."""
        if self._is_lost:
            return
        self._is_closing = self._is_lost = True
        self._is_reading = False
        self._held.clear()
        self._held_bytes = 0
        self._socket.abort()
        self._loop.call_soon(self._tell_lost, error)

    def _finish(self, error: Exception | None) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._socket.close(self._loop.now_ns)
            self._tell_lost(error)

    def _tell_lost(self, error: Exception | None) -> None:
        self._socket.readable = self._socket.writable = None
        self._gone()
        self._protocol.connection_lost(error)


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
