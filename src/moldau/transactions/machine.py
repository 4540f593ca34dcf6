"""The coordinator of transactions: one machine for each partition of __transaction_state."""

from collections.abc import Callable, Hashable
from typing import Any, Final

from moldau.coordination.machine import Decision, Effect, Ticket
from moldau.kernel.clock import Instant
from moldau.kernel.ids import Offset, ProducerId
from moldau.protocol.schema import Message
from moldau.protocol.stored.transaction_state import TransactionLogKey, TransactionLogValue
from moldau.transactions import commands
from moldau.transactions.adding import decide_add, decide_verify
from moldau.transactions.context import TransactionContext
from moldau.transactions.ending import (
    decide_complete,
    decide_end,
    decide_timed_out,
    markers_of,
)
from moldau.transactions.expiring import (
    IdsDue,
    TimeoutsDue,
    WaitedLong,
    expire_ids,
    expire_timeouts,
    expire_waits,
    look_for_ids,
    timeout_effects,
)
from moldau.transactions.initializing import decide_init
from moldau.transactions.records import transaction_of
from moldau.transactions.shelf import TransactionShelf
from moldau.transactions.showing import decide_describe, decide_list
from moldau.transactions.state import TransactionState


class TransactionMachine:
    """All transactional ids of a partition; a `coordination.machine.Machine`."""

    def __init__(self, context: TransactionContext) -> None:
        self.shelf = TransactionShelf(context)

    def decide(self, command: object, ticket: Ticket, now: Instant) -> Decision:
        """Decide a command."""
        return _DECIDE[type(command)](self.shelf, command, ticket, now)

    def expire(self, key: Hashable, now: Instant) -> Decision:
        """Decide what follows from a timer."""
        return _EXPIRE[type(key)](self.shelf, key, now)

    def loaded(self, now: Instant) -> Decision:
        """Go on with what was decided and not completed, and with what has time left."""
        effects: list[Effect] = [look_for_ids(self.shelf, now)]
        for known in self.shelf.transactions.values():
            if known.state.is_prepared:
                effects.append(markers_of(known))
            elif known.state is TransactionState.ONGOING:
                effects += timeout_effects(self.shelf, known, now)
        return Decision(effects=effects)

    def replay(
        self,
        offset: Offset,  # noqa: ARG002 - only the latest record of an id counts
        producer_id: ProducerId,  # noqa: ARG002 - nothing here is in a transaction itself
        key: Message,
        value: Message | None,
    ) -> None:
        """Apply a record."""
        assert isinstance(key, TransactionLogKey)
        if value is None:
            self.shelf.transactions.pop(key.transactional_id, None)
            return
        assert isinstance(value, TransactionLogValue)
        self.shelf.transactions[key.transactional_id] = transaction_of(key, value)

    def end_transaction(self, producer_id: ProducerId, *, is_commit: bool) -> None:
        """Nothing: nobody writes to this topic in a transaction."""


_DECIDE: Final[dict[type[Any], Callable[..., Decision]]] = {
    commands.InitProducer: decide_init,
    commands.AddPartitions: decide_add,
    commands.VerifyPartitions: decide_verify,
    commands.EndTransaction: decide_end,
    commands.AbortTimedOut: decide_timed_out,
    commands.CompleteTransaction: decide_complete,
    commands.DescribeTransaction: decide_describe,
    commands.ListTransactions: decide_list,
}

_EXPIRE: Final[dict[type[Any], Callable[..., Decision]]] = {
    TimeoutsDue: expire_timeouts,
    IdsDue: expire_ids,
    WaitedLong: expire_waits,
}
