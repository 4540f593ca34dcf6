"""A connection: requests take effect in the order they came, and responses leave in that order.

    received ---> started ---> answered ---> left
             |             |             |
             |             |             when all before it have left
             |             by its handler, at once or later
             when all before it are answered; a Produce when those that are not are Produces

A Produce has been appended when its handler returns, so the next may be appended behind it while
both wait for their sync. What may not start yet stays in the receive buffer, unread: there is no
queue of requests. What has started is bounded, in requests and bytes.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from moldau.broker.calls import Call, OutgoingPiece, Peer, Response, Sent
from moldau.broker.router import PRODUCE, Router
from moldau.kernel.clock import Instant
from moldau.kernel.errors import ProtocolError
from moldau.protocol.framing import encode_response
from moldau.protocol.schema import Buffer

FRAMES_AT_ONCE_MAX: Final = 128
QUEUED_BYTES_MAX: Final = 64 << 10
"""What is queued is sent before more is answered: a client that does not read gets no further."""

_NO_API: Final = -1


class ConnectionLimits(NamedTuple):
    """How much a connection may hold."""

    frame_bytes_max: int
    pending_requests_max: int
    pending_bytes_max: int
    unsent_bytes_max: int


class ClientConnection:
    """The order of one connection.

    `wake` is called when there may be something to send or to start; `left` is told the calls whose
    responses go out.
    """

    __slots__ = (
        "_barriers",
        "_calls",
        "_going",
        "_is_closed",
        "_leaving",
        "_left",
        "_limits",
        "_outgoing",
        "_outgoing_sent",
        "_pending_bytes",
        "_queued_bytes",
        "_router",
        "_unanswered",
        "_wake",
        "has_more",
        "is_blocked",
        "is_hanging_up",
        "must_close",
        "peer",
        "unsent_bytes",
    )

    def __init__(
        self,
        router: Router,
        peer: Peer,
        limits: ConnectionLimits,
        wake: Callable[[], None],
        left: Callable[[Sequence[Call]], None],
    ) -> None:
        self.peer = peer
        self.has_more = False
        """Whether there are requests in the buffer that could start, but have had their share."""
        self.is_blocked = False
        """Whether a request in the buffer waits for its predecessors."""
        self.is_hanging_up = False
        """Whether no further request is taken."""
        self.must_close = False
        """Whether to close behind what `take` returns."""
        self.unsent_bytes = 0
        """What was taken and has not gone to the network; nothing starts until it is 0."""
        self._router = router
        self._limits = limits
        self._wake = wake
        self._left = left
        self._calls: deque[Call] = deque()
        self._unanswered = 0
        # Of those, the ones behind which nothing may start.
        self._barriers = 0
        self._pending_bytes = 0
        self._queued_bytes = 0
        self._leaving: list[Call] = []
        self._outgoing: list[OutgoingPiece] = []
        self._outgoing_sent: list[Sent] = []
        self._going: list[Sent] = []
        self._is_closed = False

    @property
    def is_quiet(self) -> bool:
        """Whether every request was answered and every response has gone."""
        is_taken = not self._outgoing and not self._outgoing_sent
        return not self._calls and is_taken and not self.unsent_bytes

    @property
    def room(self) -> int:
        """How many bytes of responses may still be queued for the peer."""
        return max(0, self._limits.unsent_bytes_max - self._queued_bytes - self.unsent_bytes)

    # ------------------------------------------------------------------------------- requests

    def receive(self, data: Buffer, start: int, end: int, now: Instant) -> int:
        """Start the requests in `data[start:end]` that may start; return where the rest begins.

        A malformed frame is answered by hanging up behind what came before it.
        """
        self.is_blocked = self.has_more = False
        if self.is_hanging_up:
            return end
        try:
            frames, position = self._router.splitter.split(
                data,
                start,
                end,
                frame_bytes_max=self._limits.frame_bytes_max,
                frames_max=FRAMES_AT_ONCE_MAX,
            )
        except ProtocolError as error:
            self._router.hang_up(self._add(Call(_NO_API, 0, 0, None, self.peer, now, self)), error)
            return end
        # Nearly always nothing is left over.
        self.has_more = position < end and len(frames) > 0 and self._has_frame(data, position, end)
        for frame in frames:
            api_key = frame.api_key
            if (self._unanswered or self._queued_bytes or self.unsent_bytes) and not (
                self._may_start(api_key)
            ):
                self.is_blocked = True
                break
            call = Call(
                api_key,
                frame.api_version,
                frame.correlation_id,
                frame.client_id,
                self.peer,
                now,
                self,
                frame.end - frame.start,
            )
            self._add(call)
            self._router.start(call, data, frame)
            start = frame.end
            if call.hangs_up:
                self.has_more = False
                return end
        return start

    def _has_frame(self, data: Buffer, start: int, end: int) -> bool:
        """Whether there is another frame, or something that will never be one."""
        if end - start < 4:
            return False
        size = int.from_bytes(data[start : start + 4], signed=True)
        is_incomplete = end - start - 4 < size <= self._limits.frame_bytes_max
        return not is_incomplete

    def _may_start(self, api_key: int) -> bool:
        limits = self._limits
        if self.unsent_bytes or self._queued_bytes >= QUEUED_BYTES_MAX:
            return False
        if not self._unanswered:
            return True
        return (
            api_key == PRODUCE
            and not self._barriers
            and len(self._calls) < limits.pending_requests_max
            and self._pending_bytes < limits.pending_bytes_max
        )

    def _add(self, call: Call) -> Call:
        self._calls.append(call)
        self._unanswered += 1
        self._pending_bytes += call.size
        if call.api_key != PRODUCE:
            self._barriers += 1
        return call

    # -------------------------------------------------------------------------------- answers

    def answered(self, call: Call, response: Response, sent: Sent | None) -> None:
        """Queue the response until its turn comes."""
        assert not call.is_answered, "a call is answered once"
        if self._is_closed:
            call.is_answered = True
            if sent is not None:
                sent()
            return
        if isinstance(response, bytes):
            call.pieces = [response]
            self._queued_bytes += len(response)
        elif isinstance(response, list):
            call.pieces = response
            self._queued_bytes += sum(map(len, response))
        elif response is not None:
            try:
                pieces = encode_response(response, call.version, correlation_id=call.correlation_id)
            except Exception as error:  # noqa: BLE001 - whatever a handler put in
                self._router.watch.failed(call, error)
                call.sent = sent
                self.hang_up(call)
                return
            call.pieces = pieces
            for piece in pieces:
                self._queued_bytes += len(piece)
        call.sent = sent
        self._finish(call)

    def failed(self, call: Call, error: Exception) -> None:
        """Answer a call as its error allows; unlike the peer, the error is not lost."""
        self._router.fail(call, error)

    def hang_up(self, call: Call) -> None:
        """Close the connection when the call's turn comes, and take no further request."""
        assert not call.is_answered, "a call is answered once"
        call.hangs_up = True
        self.is_hanging_up = True
        self._finish(call)

    def _finish(self, call: Call) -> None:
        call.is_answered = True
        if self._is_closed:
            return
        self._unanswered -= 1
        self._pending_bytes -= call.size
        if call.api_key != PRODUCE:
            self._barriers -= 1
        calls = self._calls
        while calls and calls[0].is_answered:
            first = calls.popleft()
            if first.sent is not None:
                self._outgoing_sent.append(first.sent)
            if first.hangs_up:
                self.must_close = True
            if not self.must_close:
                if first.pieces is not None:
                    self._outgoing += first.pieces
                    # A handler that still has the call need not have the records in it.
                    first.pieces = None
                self._leaving.append(first)
        self._wake()

    # -------------------------------------------------------------------------------- sending

    def take(self) -> tuple[list[OutgoingPiece], int]:
        """Return what is to be sent now, and its size; `gone` says what the network left."""
        outgoing, self._outgoing = self._outgoing, []
        if self._leaving:
            leaving, self._leaving = self._leaving, []
            self._left(leaving)
        if self._outgoing_sent:
            self._going += self._outgoing_sent
            self._outgoing_sent.clear()
        size = len(outgoing[0]) if len(outgoing) == 1 else sum(map(len, outgoing))
        self._queued_bytes -= size
        return outgoing, size

    def gone(self, unsent_bytes: int) -> None:
        """Say how much of what was taken is still to be sent."""
        self.unsent_bytes = unsent_bytes
        if not unsent_bytes and self._going:
            going, self._going = self._going, []
            for sent in going:
                sent()

    def close(self) -> None:
        """Forget everything: the peer is gone. Answers that come later go nowhere."""
        self._is_closed = self.is_hanging_up = True
        waiting = [call.sent for call in self._calls if call.sent is not None]
        for call in self._calls:
            if call.on_close is not None and not call.is_answered:
                call.on_close()
        if self.peer.on_close is not None:
            self.peer.on_close()
        self._calls.clear()
        self._outgoing.clear()
        self._going += self._outgoing_sent + waiting
        self._outgoing_sent.clear()
        self.gone(0)
