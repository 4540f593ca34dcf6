"""The order of one connection, the slow and readable way: what `_native/connection` has to do."""

from collections import deque
from collections.abc import Callable, Sequence

from moldau._native.connection import ConnectionLimits
from moldau.broker.calls import Peer, Response, Sent
from moldau.broker.router import PRODUCE, Router
from moldau.kernel.clock import Instant
from moldau.kernel.errors import ProtocolError
from moldau.protocol.schema import Buffer

FRAMES_AT_ONCE_MAX = 128
QUEUED_BYTES_MAX = 64 << 10
NO_API = -1


class ReferenceCall:
    """A request's header; a handler answers it once, at once or later."""

    def __init__(
        self,
        api_key: int,
        version: int,
        correlation_id: int,
        client_id: str | None,
        peer: Peer,
        received: Instant,
        caller: "ReferenceConnection",
        size: int = 0,
    ) -> None:
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.peer = peer
        self.received = received
        self.caller = caller
        self.size = size
        self.is_answered = False
        self.hangs_up = False
        self.pieces: list[Buffer] = []
        self.sent: Sent | None = None
        self.on_close: Callable[[], None] | None = None

    def answer(self, response: Response, sent: Sent | None = None) -> None:
        self.caller.answered(self, response, sent)

    def hang_up(self) -> None:
        self.caller.hang_up(self)


class ReferenceConnection:
    """The order of one connection."""

    def __init__(
        self,
        router: Router,
        peer: Peer,
        limits: ConnectionLimits,
        wake: Callable[[], None],
        left: Callable[[Sequence[ReferenceCall]], None],
    ) -> None:
        self.peer = peer
        self.has_more = self.is_blocked = self.is_hanging_up = self.must_close = False
        self.unsent_bytes = 0
        self._router = router
        self._limits = limits
        self._wake = wake
        self._left = left
        self._calls: deque[ReferenceCall] = deque()
        self._queued_bytes = 0
        self._leaving: list[ReferenceCall] = []
        self._outgoing: list[Buffer] = []
        self._outgoing_sent: list[Sent] = []
        self._going: list[Sent] = []
        self._is_closed = False

    @property
    def is_quiet(self) -> bool:
        is_taken = not self._outgoing and not self._outgoing_sent
        return not self._calls and is_taken and not self.unsent_bytes

    @property
    def room(self) -> int:
        return max(0, self._limits.unsent_bytes_max - self._queued_bytes - self.unsent_bytes)

    def receive(self, data: Buffer, start: int, end: int, now: Instant) -> int:
        self.is_blocked = self.has_more = False
        if self.is_hanging_up:
            return end
        frame_bytes_max = self._limits.frame_bytes_max
        for number in range(FRAMES_AT_ONCE_MAX + 1):
            try:
                frames, _ = self._router.splitter.split(
                    data, start, end, frame_bytes_max=frame_bytes_max, frames_max=1
                )
            except ProtocolError as error:
                call = ReferenceCall(NO_API, 0, 0, None, self.peer, now, self)
                self._calls.append(call)
                self._router.hang_up(call, error)
                return end
            if not frames:
                break
            if number == FRAMES_AT_ONCE_MAX:
                self.has_more = True
                break
            [frame] = frames
            if not self._may_start(frame.api_key):
                self.is_blocked = True
                break
            call = ReferenceCall(
                frame.api_key,
                frame.api_version,
                frame.correlation_id,
                frame.client_id,
                self.peer,
                now,
                self,
                frame.end - frame.start,
            )
            self._calls.append(call)
            self._router.start(call, data, frame)
            if call.hangs_up:
                return end
            start = frame.end
        return start

    def _may_start(self, api_key: int) -> bool:
        open_calls = [call for call in self._calls if not call.is_answered]
        if self.unsent_bytes or self._queued_bytes >= QUEUED_BYTES_MAX:
            return False
        if not open_calls:
            return True
        return (
            api_key == PRODUCE
            and all(call.api_key == PRODUCE for call in open_calls)
            and len(self._calls) < self._limits.pending_requests_max
            and sum(call.size for call in open_calls) < self._limits.pending_bytes_max
        )

    def answered(self, call: ReferenceCall, response: Response, sent: Sent | None) -> None:
        assert not call.is_answered, "a call is answered once"
        call.sent = sent
        if self._is_closed:
            call.is_answered = True
            if sent is not None:
                sent()
            return
        if isinstance(response, bytes):
            call.pieces = [response]
        elif isinstance(response, list):
            call.pieces = response
        elif response is not None:
            try:
                call.pieces = self._router.encode(response, call)
            except Exception as error:  # noqa: BLE001 - whatever a handler put in
                self._router.watch.failed(call, error)
                self.hang_up(call)
                return
        self._queued_bytes += sum(map(len, call.pieces))
        self._finish(call)

    def hang_up(self, call: ReferenceCall) -> None:
        assert not call.is_answered, "a call is answered once"
        call.hangs_up = self.is_hanging_up = True
        self._finish(call)

    def _finish(self, call: ReferenceCall) -> None:
        call.is_answered = True
        if self._is_closed:
            return
        while self._calls and self._calls[0].is_answered:
            first = self._calls.popleft()
            if first.sent is not None:
                self._outgoing_sent.append(first.sent)
            self.must_close = self.must_close or first.hangs_up
            if not self.must_close:
                self._outgoing += first.pieces
                self._leaving.append(first)
        self._wake()

    def take(self) -> tuple[list[Buffer], int]:
        outgoing, self._outgoing = self._outgoing, []
        leaving, self._leaving = self._leaving, []
        if leaving:
            self._left(leaving)
        self._going += self._outgoing_sent
        self._outgoing_sent = []
        size = sum(map(len, outgoing))
        self._queued_bytes -= size
        return outgoing, size

    def gone(self, unsent_bytes: int) -> None:
        self.unsent_bytes = unsent_bytes
        if not unsent_bytes:
            going, self._going = self._going, []
            for sent in going:
                sent()

    def close(self) -> None:
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
        self._outgoing_sent = []
        self.gone(0)
