"""The client-stream kernel: what the loop does for every request and response, in turns."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, final

from moldau._native.connection import Call, ClientConnection, ConnectionLimits
from moldau._native.meters import Buckets, Tally

# For their types alone: the kernel imports nothing that stands above it.
from moldau.broker.calls import Peer
from moldau.broker.router import Router
from moldau.kernel.clock import Instant

TURN_BYTES_MAX: Final = 1 << 20
"""Bytes read from one connection per turn, so that it cannot starve the others."""

JOINED_BYTES_MAX: Final = 16 << 10
"""Pieces of responses below this are copied together: cheaper than a long vector."""

class ReceiveArena:
    """Memory that all connections read into, one behind the other, until the turn ends.

    As a buffer it is the part that is read into next.
    """

    memory: memoryview
    position: int
    """Where the next bytes go."""
    retired: list[memoryview]
    """Other buffers that are used again when the turn has ended: `reuse` does."""

    def __init__(self, memory: memoryview, chunk_bytes: int) -> None: ...
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def is_full(self) -> bool:
        """Whether the turn has to end before more is read into the arena."""

    def end_turn(self) -> None:
        """Use everything again."""

@final
class ListenerTurns:
    """The turns of all connections.

    A turn begins with the first bytes or answers and ends when the loop has come round: then
    `on_turn` writes what the requests have appended, and each connection gets one write. A
    connection that fails in its turn is told to `failed`.
    """

    buffers: ReceiveArena
    received_bytes: Tally
    sent_bytes: Tally
    monotonic: Callable[[], float]
    starved: list[ClientStream]
    """Connections that are woken when there is room in the buffers."""

    def __init__(
        self,
        buffers: ReceiveArena,
        received_bytes: Tally,
        sent_bytes: Tally,
        latencies: Mapping[int, Buckets],
        *,
        clock: Callable[[], Instant],
        monotonic: Callable[[], float],
        call_soon: Callable[[Callable[[], None]], Any],
        on_turn: Callable[[], None],
        failed: Callable[[ClientStream, Exception], None],
    ) -> None: ...
    def now(self) -> Instant:
        """Return the time of the turn, and see to it that it ends."""

    def schedule(self) -> None:
        """See to it that a turn ends when the loop has come round."""

    def left(self, calls: Sequence[Call]) -> None:
        """Measure calls whose responses go out."""

class ClientStream:
    """One connection, as far as its requests arrive whole and its responses are small.

    For what is not so it calls methods of the class that is made of it: `own_received` and
    `rest_received`, `send_pieces`, and `go_on` at the end of a turn.
    """

    connection: ClientConnection
    turns: ListenerTurns
    transport: asyncio.Transport | None
    active: float
    """When bytes last came or went."""
    is_reading: bool
    is_closing: bool
    own: memoryview | None
    """What was read and not started yet, when there is any; read into further from `own_end`."""
    own_end: int
    own_limit: int
    turn_bytes: int

    def __init__(
        self, turns: ListenerTurns, router: Router, peer: Peer, limits: ConnectionLimits, now: float
    ) -> None: ...
    def wake(self) -> None:
        """Have a turn when this one ends, or the next."""
