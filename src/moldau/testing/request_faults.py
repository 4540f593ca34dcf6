"""Requests and answers that go wrong when a test says so."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from moldau._native.files import FileRegion
from moldau._native.frames import Frame
from moldau.broker.calls import Call, Caller, OutgoingPiece, Response, Sent
from moldau.broker.router import PRODUCE, Router
from moldau.kernel.errors import ProtocolError
from moldau.protocol.errors import ErrorCode
from moldau.protocol.framing import decode_response
from moldau.protocol.schema import Buffer, Message
from moldau.runtime.environment import NodeEnvironment
from moldau.testing.error_answers import READING, refusal, spoiled

_SIZE_BYTES: Final = 4

Handle = Callable[[], None]
"""Have the broker handle the request after all."""


class FaultEffect(Protocol):
    """What becomes of a request that a fault has hit."""

    def apply(self, router: "FaultyRouter", call: Call, message: "Incoming") -> None:
        """Do to the call what is to be done."""


@dataclass(slots=True, eq=False)
class Rule:
    """Hits the requests of an API from the `nth` on, so many `times`."""

    api_key: int
    effect: FaultEffect
    nth: int
    times: int | None
    seen: int = 0
    hits: int = 0

    def covers_next(self) -> bool:
        """Count a request; whether it is one of those."""
        self.seen += 1
        past = self.seen - self.nth
        return past >= 0 and (self.times is None or past < self.times)


@dataclass(slots=True)
class FaultRules:
    """All faults of a broker, whichever node runs just now; used on its loop alone."""

    environment: NodeEnvironment
    rules: list[Rule] = field(default_factory=list)
    is_refusing: bool = False

    def find_effect(self, api_key: int) -> FaultEffect | None:
        """Count a request for all rules; return what the first that hits it does."""
        covering = [rule for rule in self.rules if rule.api_key == api_key and rule.covers_next()]
        if not covering:
            return None
        covering[0].hits += 1
        return covering[0].effect


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request's bytes, which are there until the call returns."""

    data: Buffer
    frame: Frame
    handle: Handle


class FaultyRouter(Router):
    """Looks for a fault before it has a request handled."""

    __slots__ = ("rules",)

    def __init__(self, router: Router, rules: FaultRules) -> None:
        super().__init__(router.broker, router.watch, router.served)
        self.rules = rules
        self.detours = rules.rules

    def start(self, call: Call, data: Buffer, frame: Frame) -> None:
        """Have a request handled, or not; what cannot be understood goes its usual way."""
        start = super().start
        effect = self._find_effect(frame) if self.rules.rules else None
        if effect is None:
            start(call, data, frame)
            return
        try:
            effect.apply(self, call, Incoming(data, frame, lambda: start(call, data, frame)))
        except ProtocolError as error:
            self.hang_up(call, error)

    def _find_effect(self, frame: Frame) -> FaultEffect | None:
        served = self.served.get(frame.api_key)
        if served is None or not served.first <= frame.api_version <= served.last:
            return None
        return self.rules.find_effect(frame.api_key)


@dataclass(frozen=True, slots=True)
class DropRequest:
    """The broker never sees it."""

    hangs_up: bool

    def apply(self, _router: FaultyRouter, call: Call, _message: Incoming) -> None:
        """Close the connection, or never answer."""
        if self.hangs_up:
            call.hang_up()


@dataclass(frozen=True, slots=True)
class DropAnswer:
    """The broker does what it was asked, and nobody hears of it."""

    hangs_up: bool

    def apply(self, _router: FaultyRouter, call: Call, message: Incoming) -> None:
        """Handle it, then close the connection, or never answer."""

        def lose(caller: Caller, _response: Response, sent: Sent | None) -> None:
            call.sent = sent
            if self.hangs_up:
                caller.hang_up(call)

        call.caller = _Between(call.caller, lose)
        message.handle()


@dataclass(frozen=True, slots=True)
class DelayAnswer:
    """The broker does what it was asked at once, and its answer comes late."""

    seconds: float

    def apply(self, router: FaultyRouter, call: Call, message: Incoming) -> None:
        """Handle it, and hold the answer back."""
        environment = router.rules.environment

        def hold(caller: Caller, response: Response, sent: Sent | None) -> None:
            due = environment.monotonic() + self.seconds
            environment.at(due, lambda: caller.answered(call, response, sent))

        call.caller = _Between(call.caller, hold)
        message.handle()


@dataclass(frozen=True, slots=True)
class Fail:
    """The broker answers with an error, and what was to be changed is not."""

    code: ErrorCode

    def apply(self, router: FaultyRouter, call: Call, message: Incoming) -> None:
        """Answer with the error."""
        api = router.served[call.api_key].api
        if api.name in READING:

            def spoil(caller: Caller, response: Response, sent: Sent | None) -> None:
                answer = _decoded(response, api.response_class, call.version)
                caller.answered(call, spoiled(answer, call.version, self.code), sent)

            call.caller = _Between(call.caller, spoil)
            message.handle()
            return
        frame = message.frame
        body = bytes(memoryview(message.data)[frame.body : frame.end])
        request, _ = api.request_class.plan(call.version).decode_from(body)
        if call.api_key == PRODUCE and not request.acks:
            call.hang_up()  # so says Kafka that something is wrong when nobody waits for an answer
            return
        call.answer(refusal(request, api.response_class, call.version, self.code))


def _decoded(response: Response, kind: type[Message], version: int) -> Message:
    """Return an answer that a kernel may have encoded already."""
    assert response is not None, "what reads is answered"
    if isinstance(response, Message):
        return response
    pieces = [response] if isinstance(response, bytes) else response
    frame = b"".join(_content(piece) for piece in pieces)
    _, answer = decode_response(frame[_SIZE_BYTES:], kind, version)
    return answer


def _content(piece: OutgoingPiece) -> Buffer:
    if isinstance(piece, FileRegion):
        return os.pread(piece.file.fd, piece.length, piece.position)
    return piece


class _Between:
    """Stands between a call and its connection."""

    def __init__(
        self, caller: Caller, answered: Callable[[Caller, Response, Sent | None], None]
    ) -> None:
        self._caller = caller
        self._answered = answered

    @property
    def room(self) -> int:
        """How many bytes of responses may still be queued for the peer."""
        return self._caller.room

    def answered(self, _call: Call, response: Response, sent: Sent | None) -> None:
        """Do with the answer what the fault says."""
        self._answered(self._caller, response, sent)

    def hang_up(self, call: Call) -> None:
        """Close the connection when the call's turn comes."""
        self._caller.hang_up(call)

    def failed(self, call: Call, error: Exception) -> None:
        """Answer with what can be said of an error of ours, and have it noted."""
        self._caller.failed(call, error)
