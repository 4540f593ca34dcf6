"""The transactions of one partition, and what is known of them only until a restart."""

from math import inf
from typing import TYPE_CHECKING

from moldau.coordination.producer import ProducerIdentity
from moldau.coordination.refusal import Refusal
from moldau.kernel.ids import ProducerEpoch
from moldau.protocol.errors import ErrorCode
from moldau.transactions.context import TransactionContext
from moldau.transactions.transaction import NO_EPOCH, Transaction

if TYPE_CHECKING:
    from moldau.coordination.command import Done, Ticket
    from moldau.transactions.commands import AddPartitions


class TransactionShelf:
    """What decisions look at; `transactions` is durable, all else is soft."""

    def __init__(self, context: TransactionContext) -> None:
        self.context = context
        self.transactions: dict[str, Transaction] = {}
        """By transactional id; changed by `replay` only."""
        self.deadlines: dict[str, float] = {}
        """When transactions time out (monotonic), those that have ended meanwhile as well."""
        self.looks_at = -inf
        """When those that are late are looked for the next time."""
        self.waiting: dict[str, list[tuple[Ticket[Done], AddPartitions]]] = {}
        """Requests that wait for a prepared transaction to be completed, to begin the next one."""
        self._last_epochs: dict[str, ProducerEpoch] = {}

    @property
    def record_version(self) -> int:
        """The version in which records are written."""
        return 1 if self.context.transaction_version >= 1 else 0

    def get(self, transactional_id: str) -> Transaction:
        """Return what is known of an id that a producer says to have."""
        known = self.transactions.get(transactional_id)
        if known is None:
            raise Refusal(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "The id is not known here.")
        return known

    def check_version(self, client_version: int) -> None:
        """Refuse a client that knows more of transactions than can be recorded."""
        if client_version > 0 and self.record_version == 0:
            raise Refusal(
                ErrorCode.UNSUPPORTED_VERSION, "The cluster's transaction.version is too low."
            )

    def last_epoch(self, transactional_id: str) -> ProducerEpoch:
        """Return the epoch that the producer had before, if it may ask once more with it.

        Kafka forgets it with a restart as well.
        """
        return self._last_epochs.get(transactional_id, NO_EPOCH)

    def set_last_epoch(self, transactional_id: str, epoch: ProducerEpoch) -> None:
        """Remember it, or that there is none.

        That comes before anything is recorded. If it is not, no harm is done: it is the epoch that
        the producer has now, which may ask with it anyway.
        """
        if epoch == NO_EPOCH:
            self._last_epochs.pop(transactional_id, None)
        else:
            self._last_epochs[transactional_id] = epoch


def check_owner(known: Transaction, producer: ProducerIdentity) -> None:
    """Refuse a producer that is not, or no longer, the transaction's."""
    id_, epoch = known.owner
    if producer.id != id_:
        raise Refusal(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, "The transactional id has another producer id."
        )
    if producer.epoch != epoch:
        raise Refusal(ErrorCode.PRODUCER_FENCED, "The producer has another epoch by now.")
