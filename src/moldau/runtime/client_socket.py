"""A client's connection on the event loop: bytes in, frames to the order machine, responses out."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, cast

from moldau._native.files import FileRegion
from moldau.broker.calls import Call, OutgoingPiece, Peer
from moldau.broker.connection import ClientConnection, ConnectionLimits
from moldau.broker.router import Router
from moldau.kernel.clock import Instant
from moldau.runtime.file_sender import FileSender
from moldau.runtime.receive_buffers import CHUNK_BYTES, GROWTH_BYTES_MAX, ReceiveBuffers

if TYPE_CHECKING:
    from moldau.kernel.disk import Buffer

TURN_BYTES_MAX: Final = 1 << 20
"""What is read of one connection before all others had their turn."""

JOINED_BYTES_MAX: Final = 16 << 10
"""Pieces of responses below this are copied together: cheaper than a long vector."""


class Host(Protocol):
    """What a client's connection needs from its listener."""

    router: Router
    buffers: ReceiveBuffers
    limits: ConnectionLimits
    monotonic: Callable[[], float]

    def received(self, size: int) -> None:
        """Count received bytes."""

    def now(self) -> Instant:
        """Return the time of the turn, and see to it that it ends."""

    def make_room(self) -> None:
        """End the turn early, because the arena is full."""

    def starved(self, client: "ClientSocket") -> None:
        """Wake the client when there is room in the buffers."""

    def wake(self, client: "ClientSocket") -> None:
        """Call `turn` when the turn ends."""

    def left(self, calls: Sequence[Call]) -> None:
        """Measure calls whose responses go out."""

    def sent(self, size: int) -> None:
        """Count bytes that go out."""

    def lost(self, client: "ClientSocket") -> None:
        """Forget a connection."""


class ClientSocket(asyncio.BufferedProtocol):
    """One connection of a client."""

    __slots__ = (
        "_claimed",
        "_end",
        "_files",
        "_host",
        "_is_closing",
        "_is_reading",
        "_is_starved",
        "_limit",
        "_own",
        "_start",
        "_transport",
        "_turn_bytes",
        "_unsent_seen",
        "_whole_at",
        "active",
        "connection",
        "is_awake",
    )

    def __init__(self, host: Host, peer: Peer, now: float) -> None:
        self.connection = ClientConnection(host.router, peer, host.limits, self._wake, host.left)
        self.is_awake = False
        self.active = now
        """When bytes last came or went."""
        self._host = host
        self._transport: asyncio.Transport | None = None
        # Made for the first response that leaves from a file.
        self._files: FileSender | None = None
        self._is_reading = True
        self._is_starved = False
        self._is_closing = False
        # What was read and not started yet, when there is any.
        self._own: memoryview | None = None
        self._start = self._end = self._limit = self._whole_at = 0
        # The size of the large frame that is being read.
        self._claimed = 0
        self._turn_bytes = 0
        self._unsent_seen = 0

    # ------------------------------------------------------------------------------ receiving

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        # Pause and resume at 0 tell exactly when the transport holds bytes of ours: uvloop does
        # not copy what it is given to write.
        self._transport.set_write_buffer_limits(high=0, low=0)

    def get_buffer(self, _size: int) -> memoryview:
        """Return where to read to."""
        if self._own is not None:
            return self._own[self._end : self._limit]
        buffers = self._host.buffers
        if buffers.is_full:
            self._host.make_room()
        return buffers.window()

    def buffer_updated(self, size: int) -> None:
        """Start the requests that are there."""
        host = self._host
        host.received(size)
        self._turn_bytes += size
        if self._own is not None:
            self._end += size
            if self._end < self._whole_at and self._turn_bytes < TURN_BYTES_MAX:
                # A piece of a large frame, of which there are many: nothing starts, no turn begins.
                self.active = host.monotonic()
                return
        now = host.now()
        self.active = now.monotonic
        if self._own is None:
            buffers = host.buffers
            start = buffers.position
            end = start + size
            rest = self.connection.receive(buffers.arena, start, end, now)
            if rest > start:
                buffers.keep(size)
            has_had_its_share = self._turn_bytes >= TURN_BYTES_MAX
            if rest == end and not has_had_its_share and not self.connection.is_hanging_up:
                return
            if rest < end:
                self._settle(buffers.arena, rest, end)
        else:
            self._receive_own(now)
        self._go_on_reading()

    def eof_received(self) -> bool:
        """Close: a client that has stopped sending does not wait for answers."""
        return False

    def _receive_own(self, now: Instant) -> None:
        """Start what may start of the bytes in the connection's own buffer."""
        own = self._own
        assert own is not None
        rest = self.connection.receive(own, self._start, self._end, now)
        if rest < self._end:
            self._settle(own, rest, self._end)
        else:
            self._drop_own()

    def _drop_own(self) -> None:
        self._is_starved = False
        self._claim(0)
        self._retire_own()

    def _retire_own(self) -> None:
        if self._own is not None:
            self._host.buffers.retire(self._own)
            self._own = None

    def _claim(self, size: int) -> None:
        """Have a large frame counted whole as long as it is read; 0: there is none."""
        self._host.buffers.claimed_bytes += size - self._claimed
        self._claimed = size

    @property
    def _is_waiting(self) -> bool:
        """Whether there is a whole request that could not start yet."""
        return self.connection.is_blocked or self.connection.has_more

    def _settle(self, data: memoryview, start: int, end: int) -> None:
        """Have what is left over in a buffer of the connection's own, with room for what comes."""
        size = end - start
        buffers = self._host.buffers
        own = self._own
        frame_bytes = 0 if self._is_waiting else _frame_bytes(data, start, size)
        # A large claim is believed step by step, as its bytes come.
        wanted = min(frame_bytes, max(GROWTH_BYTES_MAX, 2 * size)) or size
        if not (self._claimed and own is data and start == self._start):
            self._claim(0)
        # Whoever has begun with a large frame may end it, or all would wait for each other.
        is_large = frame_bytes > CHUNK_BYTES
        is_starved = is_large and not self._claimed and not buffers.has_room
        if is_starved:
            wanted = size
            self._host.starved(self)
        elif is_large:
            self._claim(frame_bytes)
        if own is None or start + wanted > len(own):
            fresh = buffers.take(wanted)
            fresh[:size] = data[start:end]
            self._retire_own()
            self._own = own = fresh
            start = 0
        self._is_starved = is_starved
        self._start = start
        self._end = start + size
        # A large frame is read to its end and no further: nothing is left over to be copied.
        stops = wanted > CHUNK_BYTES
        self._whole_at = start + wanted if stops else 0
        self._limit = self._whole_at if stops else len(own)

    def _go_on_reading(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        connection = self.connection
        is_patient = connection.is_blocked or self._is_starved or connection.is_hanging_up
        has_had_its_share = connection.has_more or self._turn_bytes >= TURN_BYTES_MAX
        if has_had_its_share and not is_patient:
            self._wake()
        is_reading = not is_patient and not has_had_its_share
        if is_reading != self._is_reading:
            self._is_reading = is_reading
            if is_reading:
                transport.resume_reading()
            else:
                transport.pause_reading()

    # -------------------------------------------------------------------------------- sending

    def _wake(self) -> None:
        if not self.is_awake:
            self.is_awake = True
            self._host.wake(self)

    def turn(self) -> None:
        """Send what is to be sent, and go on with what has waited."""
        self.is_awake = False
        self._turn_bytes = 0
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        connection = self.connection
        if not self._is_sending_files:
            self._send(transport)
        if connection.must_close or (self._is_closing and connection.is_quiet):
            if not self._is_sending_files:
                transport.close()
            return
        if self._own is not None and (self._is_waiting or self._is_starved):
            self._receive_own(self._host.now())
        if not self._is_reading:
            self._go_on_reading()

    def _send(self, transport: asyncio.Transport) -> None:
        taken, size = self.connection.take()
        if taken:
            self._host.sent(size)
            if len(taken) > 1 and any(isinstance(piece, FileRegion) for piece in taken):
                self._send_files(transport, taken, size)
                return
            pieces = cast("list[Buffer]", taken)
            if len(pieces) == 1:
                transport.write(pieces[0])
            elif size <= JOINED_BYTES_MAX:
                transport.write(b"".join(pieces))
            else:
                transport.writelines(pieces)
        self.connection.gone(transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """The transport has sent everything."""
        if self._is_sending_files:
            assert self._files is not None, "it has something to send"
            if self._files.go_on():
                self._all_gone()
        else:
            self._all_gone()

    def _all_gone(self) -> None:
        self.connection.gone(0)
        self._wake()

    # Responses with regions of files. A later answer waits behind them.

    @property
    def _is_sending_files(self) -> bool:
        return self._files is not None and self._files.unsent_bytes > 0

    def _send_files(
        self, transport: asyncio.Transport, pieces: list[OutgoingPiece], size: int
    ) -> None:
        files = self._files
        if files is None:
            files = self._files = FileSender(transport, self._all_gone, self.abort)
        files.queue(pieces, size)
        self.connection.gone(size)
        if not transport.get_write_buffer_size() and files.go_on():
            self.connection.gone(0)

    # --------------------------------------------------------------------------------- ending

    def finish(self) -> None:
        """Take no further request; close when all answers have gone."""
        self._is_closing = True
        self.connection.is_hanging_up = True
        self._go_on_reading()
        self._wake()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def check(self, now: float, *, idle_seconds: float | None, stall_seconds: float) -> None:
        """Cut a client that is idle too long, or has stopped inside a request or response."""
        unsent = self._transport.get_write_buffer_size() if self._transport is not None else 0
        if self._files is not None:
            unsent += self._files.unsent_bytes
        if unsent != self._unsent_seen:
            self._unsent_seen = unsent
            self.active = now
        is_inside_request = self._own is not None and not self._is_waiting and not self._is_starved
        if unsent or is_inside_request:
            seconds_max: float | None = stall_seconds
        else:
            seconds_max = idle_seconds if self.connection.is_quiet else None
        if seconds_max is not None and now - self.active > seconds_max:
            self.abort()

    def connection_lost(self, _error: Exception | None) -> None:
        """Let go of everything."""
        self._transport = None
        if self._files is not None:
            self._files.close()
        self._drop_own()
        self.connection.close()
        self._host.lost(self)


def _frame_bytes(data: memoryview, start: int, size: int) -> int:
    """Return how large the frame at `start` is, of which `size` bytes are there."""
    return CHUNK_BYTES if size < 4 else 4 + int.from_bytes(data[start : start + 4])
