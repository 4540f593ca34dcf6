"""The coordinator of transactions: one machine for each partition of __transaction_state."""

from collections.abc import Hashable
from typing import Final

from moldau.coordination.command import Answer, Command, Ticket
from moldau.coordination.decision import Decision, Effect, UnaskedDecision
from moldau.coordination.machine import DecisionTable
from moldau.kernel.clock import Instant
from moldau.kernel.ids import Offset, ProducerId
from moldau.protocol.schema import Message
from moldau.protocol.stored.transaction_state import TransactionLogKey, TransactionLogValue
from moldau.transactions import commands
from moldau.transactions.context import TransactionContext
from moldau.transactions.description import decide_describe, decide_list
from moldau.transactions.end import decide_complete, decide_end, decide_timed_out, markers_of
from moldau.transactions.expiry import (
    IdsDue,
    TimeoutsDue,
    WaitedLong,
    expire_ids,
    expire_timeouts,
    expire_waits,
    look_for_ids,
    timeout_effects,
)
from moldau.transactions.initialization import decide_init
from moldau.transactions.partitions import decide_add, decide_verify
from moldau.transactions.records import transaction_of
from moldau.transactions.shelf import TransactionShelf
from moldau.transactions.state import TransactionState


class TransactionMachine:
    """All transactional ids of a partition; a `coordination.machine.Machine`."""

    def __init__(self, context: TransactionContext) -> None:
        self.shelf = TransactionShelf(context)

    def decide(
        self, command: Command[Answer], ticket: Ticket[Answer], now: Instant
    ) -> Decision[Answer]:
        """Decide a command."""
        return DECISIONS.decide(self.shelf, command, ticket, now)

    def expire(self, key: Hashable, now: Instant) -> UnaskedDecision:
        """Decide what follows from a timer."""
        return DECISIONS.expire(self.shelf, key, now)

    def loaded(self, now: Instant) -> UnaskedDecision:
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
        """Nothing: this topic is not written to in transactions."""


DECISIONS: Final = DecisionTable[TransactionShelf](
    {
        commands.InitProducer: decide_init,
        commands.AddPartitions: decide_add,
        commands.VerifyPartitions: decide_verify,
        commands.EndTransaction: decide_end,
        commands.AbortTimedOut: decide_timed_out,
        commands.CompleteTransaction: decide_complete,
        commands.DescribeTransaction: decide_describe,
        commands.ListTransactions: decide_list,
    },
    {
        TimeoutsDue: expire_timeouts,
        IdsDue: expire_ids,
        WaitedLong: expire_waits,
    },
)
