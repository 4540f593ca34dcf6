"""A client's connection on the event loop, where it is not as usual."""

import asyncio
from typing import TYPE_CHECKING, Protocol, cast

from moldau._native.client_stream import (
    JOINED_BYTES_MAX,
    TURN_BYTES_MAX,
    ClientStream,
    ListenerTurns,
)
from moldau._native.connection import ConnectionLimits
from moldau._native.files import FileRegion
from moldau.broker.calls import OutgoingPiece, Peer
from moldau.broker.router import Router
from moldau.kernel.clock import Instant
from moldau.runtime.environment import NodeEnvironment, RegionSender
from moldau.runtime.receive_buffers import CHUNK_BYTES, GROWTH_BYTES_MAX, ReceiveBuffers

if TYPE_CHECKING:
    from moldau.kernel.disk import Buffer


class Host(Protocol):
    """What a client's connection needs from its listener."""

    environment: NodeEnvironment
    router: Router
    buffers: ReceiveBuffers
    limits: ConnectionLimits
    turns: ListenerTurns

    def lost(self, client: "ClientSocket") -> None:
        """Forget a connection."""


class ClientSocket(ClientStream, asyncio.BufferedProtocol):
    """One connection of a client.

    `ClientStream` takes requests that arrive whole and sends small responses. Here are requests
    that come in parts or must wait, large responses, and the connection's beginning and end.
    """

    __slots__ = (
        "_claimed",
        "_files",
        "_host",
        "_is_starved",
        "_start",
        "_unsent_seen",
        "_whole_at",
    )

    def __init__(self, host: Host, peer: Peer, now: float) -> None:
        super().__init__(host.turns, host.router, peer, host.limits, now)
        self._host = host
        # Made for the first response that leaves from a file.
        self._files: RegionSender | None = None
        self._is_starved = False
        # Where what was read and not started yet begins in `own`, and where a large frame ends.
        self._start = self._whole_at = 0
        # The size of the large frame that is being read.
        self._claimed = 0
        self._unsent_seen = 0

    # ------------------------------------------------------------------------------ receiving

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self.transport = cast("asyncio.Transport", transport)
        # Pause and resume at 0 tell exactly when the transport holds bytes of ours: uvloop does
        # not copy what it is given to write.
        self.transport.set_write_buffer_limits(high=0, low=0)

    def own_received(self, size: int) -> None:
        """Start the requests that are whole now in the connection's own buffer."""
        self.own_end += size
        if self.own_end < self._whole_at and self.turn_bytes < TURN_BYTES_MAX:
            # A piece of a large frame, of which there are many: nothing starts, no turn begins.
            self.active = self.turns.monotonic()
            return
        now = self.turns.now()
        self.active = now.monotonic
        self._receive_own(now)
        self._go_on_reading()

    def rest_received(self, start: int, end: int) -> None:
        """Keep what may not start yet, or is not whole, of what was read into the arena."""
        if start < end:
            self._settle(self.turns.buffers.memory, start, end)
        self._go_on_reading()

    def eof_received(self) -> bool:
        """Close: a client that has stopped sending does not wait for answers."""
        return False

    def _receive_own(self, now: Instant) -> None:
        """Start what may start of the bytes in the connection's own buffer."""
        own = self.own
        assert own is not None
        rest = self.connection.receive(own, self._start, self.own_end, now)
        if rest < self.own_end:
            self._settle(own, rest, self.own_end)
        else:
            self._drop_own()

    def _drop_own(self) -> None:
        self._is_starved = False
        self._claim(0)
        self._retire_own()

    def _retire_own(self) -> None:
        if self.own is not None:
            self._host.buffers.retire(self.own)
            self.own = None

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
        own = self.own
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
            self.turns.starved.append(self)
        elif is_large:
            self._claim(frame_bytes)
        if own is None or start + wanted > len(own):
            fresh = buffers.take(wanted)
            fresh[:size] = data[start:end]
            self._retire_own()
            self.own = own = fresh
            start = 0
        self._is_starved = is_starved
        self._start = start
        self.own_end = start + size
        # A large frame is read to its end and no further: nothing is left over to be copied.
        stops = wanted > CHUNK_BYTES
        self._whole_at = start + wanted if stops else 0
        self.own_limit = self._whole_at if stops else len(own)

    def _go_on_reading(self) -> None:
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        connection = self.connection
        is_patient = connection.is_blocked or self._is_starved or connection.is_hanging_up
        has_had_its_share = connection.has_more or self.turn_bytes >= TURN_BYTES_MAX
        if has_had_its_share and not is_patient:
            self.wake()
        is_reading = not is_patient and not has_had_its_share
        if is_reading != self.is_reading:
            self.is_reading = is_reading
            if is_reading:
                transport.resume_reading()
            else:
                transport.pause_reading()

    # -------------------------------------------------------------------------------- sending

    def go_on(self) -> None:
        """End a turn: close, or go on with what has waited."""
        connection = self.connection
        if connection.must_close or (self.is_closing and connection.is_quiet):
            assert self.transport is not None, "it is open"
            if not self._is_sending_files:
                self.transport.close()
            return
        if self.own is not None and (self._is_waiting or self._is_starved):
            self._receive_own(self.turns.now())
        if not self.is_reading:
            self._go_on_reading()

    def send_pieces(self) -> None:
        """Send what is large, refers to memory of others, or is in a file."""
        if self._is_sending_files:
            return  # a later answer waits behind them
        transport = self.transport
        assert transport is not None, "it is open"
        taken, size = self.connection.take()
        if taken:
            self.turns.sent_bytes.value += size
            if len(taken) > 1 and FileRegion in map(type, taken):
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
        self.wake()

    @property
    def _is_sending_files(self) -> bool:
        return self._files is not None and self._files.unsent_bytes > 0

    def _send_files(
        self, transport: asyncio.Transport, pieces: list[OutgoingPiece], size: int
    ) -> None:
        files = self._files
        if files is None:
            files = self._files = self._host.environment.file_sender(
                transport, self._all_gone, self.abort
            )
        files.queue(pieces, size)
        self.connection.gone(size)
        if not transport.get_write_buffer_size() and files.go_on():
            self.connection.gone(0)

    # --------------------------------------------------------------------------------- ending

    def finish(self) -> None:
        """Take no further request; close when all answers have gone."""
        self.is_closing = True
        self.connection.is_hanging_up = True
        self._go_on_reading()
        self.wake()

    def abort(self) -> None:
        """Close at once."""
        if self.transport is not None:
            self.transport.abort()

    def check(self, now: float, *, idle_seconds: float | None, stall_seconds: float) -> None:
        """Cut a client that is idle too long, or has stopped inside a request or response."""
        unsent = self.transport.get_write_buffer_size() if self.transport is not None else 0
        if self._files is not None:
            unsent += self._files.unsent_bytes
        if unsent != self._unsent_seen:
            self._unsent_seen = unsent
            self.active = now
        is_inside_request = self.own is not None and not self._is_waiting and not self._is_starved
        if unsent or is_inside_request:
            seconds_max: float | None = stall_seconds
        else:
            seconds_max = idle_seconds if self.connection.is_quiet else None
        if seconds_max is not None and now - self.active > seconds_max:
            self.abort()

    def connection_lost(self, _error: Exception | None) -> None:
        """Let go of everything."""
        self.transport = None
        if self._files is not None:
            self._files.close()
        self._drop_own()
        self.connection.close()
        self._host.lost(self)


def _frame_bytes(data: memoryview, start: int, size: int) -> int:
    """Return how large the frame at `start` is, of which `size` bytes are there."""
    return CHUNK_BYTES if size < 4 else 4 + int.from_bytes(data[start : start + 4])
