"""One request on its way to its answer."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from moldau._native.files import FileRegion
from moldau.kernel.clock import Instant
from moldau.protocol.schema import Buffer, Message


class Endpoint(NamedTuple):
    """Where something listens."""

    host: str
    port: int


class Peer:
    """The other end of a connection, as far as answers depend on it."""

    __slots__ = (
        "advertised",
        "fetch_from",
        "host",
        "listener",
        "on_close",
        "port",
        "software_name",
        "software_version",
    )

    def __init__(self, listener: str, host: str, advertised: Endpoint, port: int = 0) -> None:
        self.listener = listener
        self.host = host
        self.port = port
        self.advertised = advertised
        """The address of this broker that the peer can reach."""
        self.fetch_from: bytes | None = None
        """The partition that its last fetch had no room for: the next one begins there."""
        self.software_name = ""
        self.software_version = ""
        self.on_close: Callable[[], None] | None = None
        """Set by a handler that keeps something for as long as the connection lasts."""


Sent = Callable[[], None]

OutgoingPiece: TypeAlias = Buffer | FileRegion
"""A part of a response: bytes, or a range of a file that stands for them."""

Response: TypeAlias = Message | bytes | list[OutgoingPiece] | None
"""An answer, or its frame or the pieces of it if it is encoded already; None is no answer."""


class Caller(Protocol):
    """Waits for an answer: a connection."""

    @property
    def room(self) -> int:
        """How many bytes of responses may still be queued for the peer."""

    def answered(self, call: "Call", response: Response, sent: Sent | None) -> None:
        """Send the response when its turn comes, then call `sent`; None: send nothing."""

    def hang_up(self, call: "Call") -> None:
        """Close the connection when the call's turn comes."""

    def failed(self, call: "Call", error: Exception) -> None:
        """Answer with what can be said of an error of ours, and have it noted."""


class Call:
    """A request's header; a handler answers it once, at once or later."""

    __slots__ = (
        "api_key",
        "caller",
        "client_id",
        "correlation_id",
        "hangs_up",
        "is_answered",
        "on_close",
        "peer",
        "pieces",
        "received",
        "sent",
        "size",
        "version",
    )

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
    ) -> None:
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.peer = peer
        self.received = received
        self.caller = caller
        self.size = size
        """How many bytes the request had."""
        # What the caller keeps here until the call's turn comes.
        self.is_answered = False
        self.hangs_up = False
        self.pieces: Sequence[OutgoingPiece] | None = None
        self.sent: Sent | None = None
        self.on_close: Callable[[], None] | None = None
        """Set by a handler that parks the call: called if the peer goes before the answer."""

    @property
    def room(self) -> int:
        """How large the response may be, for the caller not to hold too much for a slow peer."""
        return self.caller.room

    def answer(self, response: Response, sent: Sent | None = None) -> None:
        """Answer; `sent` is called when the buffers that the response refers to are free again."""
        self.caller.answered(self, response, sent)

    def hang_up(self) -> None:
        """Answer by closing the connection."""
        self.caller.hang_up(self)

    def attempt(self, do: Callable[[], None]) -> None:
        """Go on with a call that waited; an exception is answered like one of its handler.

        What wakes it goes on with others, and its connection with what comes behind it.
        """
        try:
            do()
        except Exception as error:  # noqa: BLE001 - as for a handler
            self.caller.failed(self, error)
