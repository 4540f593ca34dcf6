"""A coordinator: decides commands, and changes by what it recorded only."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from moldau.coordination.command import Answer, Command, Ticket
from moldau.coordination.decision import Decision, UnaskedDecision
from moldau.kernel.clock import Instant
from moldau.kernel.ids import Offset, ProducerId
from moldau.protocol.schema import Message

Shelf = TypeVar("Shelf", contravariant=True)  # noqa: PLC0105 - a name for readers
"""What decisions look at."""

Decide: TypeAlias = Callable[[Shelf, Any, Ticket[Any], Instant], Decision[Any]]
Expire: TypeAlias = Callable[[Shelf, Any, Instant], UnaskedDecision]


class Machine(Protocol):
    """What a partition of a coordinator's topic means.

    `decide` and `expire` look at durable state and change none of it: only `replay` and
    `end_transaction` do, with what was decided now and, after a restart, with what was recorded
    then. Soft state, which may be lost at any restart without breaking a promise, is the machine's
    own and changes in `decide` and `expire` only, after everything was checked: a `Refusal`
    changes nothing. If records cannot be appended, the whole machine is dropped and another one
    made from the log.
    """

    def decide(
        self, command: Command[Answer], ticket: Ticket[Answer], now: Instant
    ) -> Decision[Answer]:
        """Decide a command; `Refusal` is the answer to one that is not allowed."""

    def expire(self, key: Hashable, now: Instant) -> UnaskedDecision:
        """Decide what follows from a timer that has run out."""

    def loaded(self, now: Instant) -> UnaskedDecision:
        """Go on where the log ends: everything is replayed, and from now on there are commands."""

    def replay(
        self, offset: Offset, producer_id: ProducerId, key: Message, value: Message | None
    ) -> None:
        """Apply a record; one of a transaction that is not ended has its producer's id."""

    def end_transaction(self, producer_id: ProducerId, *, is_commit: bool) -> None:
        """Apply the marker that ends a producer's transaction in this partition."""


class DecisionTable(Generic[Shelf]):
    """The functions of a machine, by the types of commands and of timers.

    No type of a `Mapping` says that its values' types follow from their keys: here alone the
    types of a command, its ticket and its answer are taken on trust, and a test compares them
    (`tests/unit/coordination/test_decision_tables.py`).
    """

    def __init__(
        self,
        decide: Mapping[type[Command[Any]], Decide[Shelf]],
        expire: Mapping[type, Expire[Shelf]],
    ) -> None:
        self.commands = decide
        self.timers = expire

    def decide(
        self, shelf: Shelf, command: Command[Answer], ticket: Ticket[Answer], now: Instant
    ) -> Decision[Answer]:
        """Decide a command."""
        decision: Decision[Answer] = self.commands[type(command)](shelf, command, ticket, now)
        return decision

    def expire(self, shelf: Shelf, key: Hashable, now: Instant) -> UnaskedDecision:
        """Decide what follows from a timer."""
        return self.timers[type(key)](shelf, key, now)
