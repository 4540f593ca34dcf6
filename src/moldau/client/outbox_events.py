"""What happens to a producer's outbox, and what it wants done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias


class OutgoingBatch(Protocol):
    """What the outbox needs to know of a batch."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def record_count(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def created(self) -> float: ...


class OutboxProducer(NamedTuple):
    """Who sends: brokers recognize what is sent twice by it."""

    producer_id: int
    epoch: int


NOBODY = OutboxProducer(-1, -1)
"""A producer without idempotence."""


class Shipment:
    """A batch that was given its place in the order of its partition."""

    __slots__ = ("attempts", "batch", "identity", "is_done", "is_in_flight", "sequence")

    def __init__(self, batch: OutgoingBatch, identity: OutboxProducer, sequence: int) -> None:
        self.batch = batch
        self.identity = identity
        self.sequence = sequence
        self.attempts = 0
        self.is_in_flight = False
        self.is_done = False


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """Batches of different partitions that go to one broker together."""

    node: int
    shipments: Sequence[Shipment]


class BatchOutcome(NamedTuple):
    """What a broker says of one batch."""

    code: int
    base_offset: int = -1
    append_time_ms: int = -1
    message: str | None = None


# Events.


@dataclass(frozen=True, slots=True)
class Closed:
    """Batches take no more records, in the order of their partitions."""

    batches: Sequence[OutgoingBatch]


@dataclass(frozen=True, slots=True)
class IdentityFound:
    """The cluster has given us an identity."""

    identity: OutboxProducer


@dataclass(frozen=True, slots=True)
class NotIdentified:
    """The cluster has given us none, for now or for good."""

    error: Exception
    is_final: bool


@dataclass(frozen=True, slots=True)
class LeadersFound:
    """Metadata says who leads a topic's partitions."""

    topic: str
    leaders: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class LeadersNotFound:
    """Metadata could not be had, or does not know the topic."""

    topic: str
    error: Exception


@dataclass(frozen=True, slots=True)
class Answered:
    """A request was answered, with an outcome for each of its shipments."""

    request: Request
    outcomes: Sequence[BatchOutcome]
    throttle_ms: int = 0


@dataclass(frozen=True, slots=True)
class Lost:
    """What became of a request is not known; nothing of it will be stored by that connection."""

    request: Request
    error: Exception


@dataclass(frozen=True, slots=True)
class OutboxTick:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class Enlisted:
    """Partitions are in the transaction: their batches may go."""

    places: Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The transaction is aborted: what is not in flight is never to be sent."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Renewed:
    """The transaction has ended, nothing of it is left; the next has this identity."""

    identity: OutboxProducer


OutboxEvent: TypeAlias = (
    Closed
    | IdentityFound
    | NotIdentified
    | LeadersFound
    | LeadersNotFound
    | Answered
    | Lost
    | OutboxTick
    | Enlisted
    | Abandoned
    | Renewed
)

# Effects.


@dataclass(frozen=True, slots=True)
class Send:
    """Send this behind what was sent to the node before."""

    request: Request


@dataclass(frozen=True, slots=True)
class Identify:
    """Ask the cluster for an identity."""


@dataclass(frozen=True, slots=True)
class Enlist:
    """Take a partition into the transaction: it has a batch to send."""

    place: tuple[str, int]


@dataclass(frozen=True, slots=True)
class Refresh:
    """Ask who leads a topic's partitions."""

    topic: str


@dataclass(frozen=True, slots=True)
class Delivered:
    """A batch is stored."""

    batch: OutgoingBatch
    base_offset: int
    append_time_ms: int


@dataclass(frozen=True, slots=True)
class Failed:
    """A batch is given up."""

    batch: OutgoingBatch
    error: Exception


@dataclass(frozen=True, slots=True)
class Halved:
    """Two batches took the place of one that was too large."""

    batch: OutgoingBatch
    halves: Sequence[OutgoingBatch]


OutboxEffect: TypeAlias = Send | Identify | Enlist | Refresh | Delivered | Failed | Halved
