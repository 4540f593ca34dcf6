"""A coordinator: decides commands, and changes by what it recorded only."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, NewType, Protocol, TypeVar

from moldau.coordination.stored_record import StoredRecord
from moldau.kernel.clock import Instant
from moldau.kernel.ids import Offset, ProducerEpoch, ProducerId
from moldau.protocol.schema import Message

Ticket = NewType("Ticket", int)
"""Stands for somebody who waits for an answer."""

NO_PRODUCER = ProducerId(-1)

Response = TypeVar("Response", bound=Message)


@dataclass(frozen=True, slots=True)
class Asked(Generic[Response]):
    """A client's request, with what its connection tells of the client."""

    request: Response
    version: int
    client_id: str = ""
    client_host: str = ""


class Producer(NamedTuple):
    """Whose transaction records belong to."""

    id: ProducerId
    epoch: ProducerEpoch


class Effect:
    """Something to do beside recording; a coordinator may have some of its own kind."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Reply(Effect):
    """Answer somebody who asked earlier and waits."""

    ticket: Ticket
    response: object


@dataclass(frozen=True, slots=True)
class SetTimer(Effect):
    """Have `expire` called with this key at a (monotonic) time; the last one set counts."""

    key: Hashable
    at: float


@dataclass(frozen=True, slots=True)
class CancelTimer(Effect):
    """Do not have `expire` called with this key."""

    key: Hashable


@dataclass(frozen=True, slots=True)
class Decision:
    """Records that take effect together, and what to do and say once they are committed.

    Timers are set at once, all other effects wait for the commit, as the response does. Without
    records the response waits for the commit of what was recorded before: nobody is told of
    something that may still be lost.
    """

    records: Sequence[StoredRecord] = ()
    response: object | None = None
    """None: whoever asked waits for a `Reply`."""
    effects: Sequence[Effect] = ()
    producer: Producer | None = None
    """The records are part of this producer's transaction."""
    is_atomic: bool = True
    """Whether the records have to be in one batch; others may be cut where it grows too large."""
    is_pure: bool = False
    """Whether nothing but the records changes anything that matters without them. If the log does
    not take them (too large, or of a producer that is fenced), only who asked hears of it."""


class Machine(Protocol):
    """What a partition of a coordinator's topic means.

    `decide` and `expire` look at durable state and change none of it: only `replay` and
    `end_transaction` do, with what was decided now and, after a restart, with what was recorded
    then. Soft state, which may be lost at any restart without breaking a promise, is the machine's
    own and changes in `decide` and `expire` only, after everything was checked: a `Refusal`
    changes nothing. If records cannot be appended, the whole machine is dropped and another one
    made from the log.
    """

    def decide(self, command: object, ticket: Ticket, now: Instant) -> Decision:
        """Decide a command; `Refusal` is the answer to one that is not allowed."""

    def expire(self, key: Hashable, now: Instant) -> Decision:
        """Decide what follows from a timer that has run out."""

    def loaded(self, now: Instant) -> Decision:
        """Go on where the log ends: everything is replayed, and from now on there are commands."""

    def replay(
        self, offset: Offset, producer_id: ProducerId, key: Message, value: Message | None
    ) -> None:
        """Apply a record; one of a transaction that is not ended has its producer's id."""

    def end_transaction(self, producer_id: ProducerId, *, is_commit: bool) -> None:
        """Apply the marker that ends a producer's transaction in this partition."""
