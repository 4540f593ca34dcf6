"""The connection kernel: a request on its way to its answer, and the order of one connection."""

from collections.abc import Callable, Sequence
from typing import final

# For their types alone: the kernel imports nothing that stands above it.
from moldau.broker.calls import Caller, OutgoingPiece, Peer, Response, Sent
from moldau.broker.router import Router
from moldau.kernel.clock import Instant
from moldau.protocol.schema import Buffer
from moldau.replication.errors import ReplicaError
from moldau.replication.replica import Replica

@final
class ConnectionLimits:
    """How much a connection may hold."""

    frame_bytes_max: int
    pending_requests_max: int
    pending_bytes_max: int
    unsent_bytes_max: int

    def __init__(
        self,
        *,
        frame_bytes_max: int,
        pending_requests_max: int,
        pending_bytes_max: int,
        unsent_bytes_max: int,
    ) -> None: ...

class Call:
    """A request's header; a handler answers it once, at once or later."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    peer: Peer
    received: Instant
    caller: Caller
    size: int  # of the request, in bytes
    is_answered: bool
    hangs_up: bool
    sent: Sent | None
    on_close: Callable[[], None] | None
    """Set by a handler that parks the call: called if the peer goes before the answer."""

    def __init__(
        self,
        api_key: int,
        version: int,
        correlation_id: int,
        client_id: str | None,
        peer: Peer,
        received: Instant,
        caller: Caller,
        size: int = 0,
    ) -> None: ...
    @property
    def room(self) -> int:
        """How large the response may be, for the caller not to hold too much for a slow peer."""

    def answer(self, response: Response, sent: Sent | None = None) -> None:
        """Answer; `sent` is called when the buffers that the response refers to are free again."""

    def hang_up(self) -> None:
        """Answer by closing the connection."""

    def attempt(self, do: Callable[[], None]) -> None:
        """Go on with a call that waited; an exception is answered like one of its handler.

        What wakes it goes on with others, and its connection with what comes behind it.
        """

@final
class PlainProduce(Call):
    """A Produce of one batch for one partition, appended and answered in the kernel.

    It is its own `AppendCallback`, and an `Appending` with a deadline.
    """

    replica: Replica
    acks: int
    log_start: int
    is_done: bool
    deadline: float

    def committed(self, replica: Replica, /) -> None:
        """Acknowledge the batch."""

    def lost(self, replica: Replica, error: ReplicaError, /) -> None:
        """Answer that the batch is lost."""

    def expire(self) -> None:
        """Answer that the time is up; the batch may be committed later."""

@final
class ClientConnection:
    """The order of one connection.

    `wake` is called when there may be something to send or to start; `left` is told the calls whose
    responses go out.
    """

    peer: Peer
    has_more: bool
    """Whether there are requests in the buffer that could start, but have had their share."""
    is_blocked: bool
    """Whether a request in the buffer waits for its predecessors."""
    is_hanging_up: bool
    """Whether no further request is taken."""
    must_close: bool
    """Whether to close behind what `take` returns."""
    unsent_bytes: int
    """What was taken and has not gone to the network; nothing starts until it is 0."""

    def __init__(
        self,
        router: Router,
        peer: Peer,
        limits: ConnectionLimits,
        wake: Callable[[], None],
        left: Callable[[Sequence[Call]], None],
    ) -> None: ...
    @property
    def is_quiet(self) -> bool:
        """Whether every request was answered and every response has gone."""

    @property
    def room(self) -> int:
        """How many bytes of responses may still be queued for the peer."""

    def receive(self, data: Buffer, start: int, end: int, now: Instant) -> int:
        """Start the requests in `data[start:end]` that may start; return where the rest begins.

        A malformed frame is answered by hanging up behind what came before it.
        """

    def answered(self, call: Call, response: Response, sent: Sent | None) -> None:
        """Queue the response until its turn comes."""

    def failed(self, call: Call, error: Exception) -> None:
        """Answer a call as its error allows; unlike the peer, the error is not lost."""

    def hang_up(self, call: Call) -> None:
        """Close the connection when the call's turn comes, and take no further request."""

    def take(self) -> tuple[list[OutgoingPiece], int]:
        """Return what is to be sent now, and its size; `gone` says what the network left."""

    def gone(self, unsent_bytes: int) -> None:
        """Say how much of what was taken is still to be sent."""

    def close(self) -> None:
        """Forget everything: the peer is gone. Answers that come later go nowhere."""
