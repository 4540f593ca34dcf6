"""One request on its way to its answer."""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

from moldau._native.connection import Call
from moldau._native.files import FileRegion
from moldau.protocol.schema import Buffer, Message

__all__ = ["Call", "Caller", "Endpoint", "OutgoingPiece", "Peer", "Response", "Sent"]


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

    def answered(self, call: Call, response: Response, sent: Sent | None) -> None:
        """Send the response when its turn comes, then call `sent`; None: send nothing."""

    def hang_up(self, call: Call) -> None:
        """Close the connection when the call's turn comes."""

    def failed(self, call: Call, error: Exception) -> None:
        """Answer with what can be said of an error of ours, and have it noted."""
