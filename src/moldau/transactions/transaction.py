"""What is recorded of a transactional id."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

from moldau.coordination.producer import NO_PRODUCER, ProducerIdentity
from moldau.kernel.ids import ProducerEpoch, ProducerId, TopicPartition
from moldau.transactions.state import PREVIOUS, TransactionState

NO_EPOCH: Final = ProducerEpoch(-1)
NO_TIME: Final = -1
EPOCH_MAX: Final = ProducerEpoch((1 << 15) - 1)
NEVER_MS: Final = (1 << 31) - 1
"""The timeout of a transaction that an outside coordinator decides about (KIP-939)."""

BUMPING: Final = 2
"""The version of transactions since which the epoch is bumped with every one of them (KIP-890)."""


def is_exhausted(epoch: int) -> bool:
    """Whether the only epoch left is kept for fencing, so that another producer id is needed."""
    return epoch >= EPOCH_MAX - 1


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transactional id's producer, and its current or last transaction."""

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    timeout_ms: int
    state: TransactionState
    update_ms: int
    start_ms: int = NO_TIME
    partitions: AbstractSet[TopicPartition] = frozenset()
    previous_producer_id: ProducerId = NO_PRODUCER
    next_producer_id: ProducerId = NO_PRODUCER
    """The id to go on with behind this transaction: its own has no epochs left, or (with an epoch)
    its writer is gone, and another one has been given the right to end it (KIP-939)."""
    next_producer_epoch: ProducerEpoch = NO_EPOCH
    client_version: int = 0
    """The version of transactions that the client spoke, or the cluster's if no client asked."""

    @property
    def producer(self) -> ProducerIdentity:
        """The producer whose records are in the transaction."""
        return ProducerIdentity(self.producer_id, self.producer_epoch)

    @property
    def is_kept(self) -> bool:
        """Whether the transaction was kept for another producer to end it."""
        return self.state is TransactionState.ONGOING and self.next_producer_epoch != NO_EPOCH

    @property
    def owner(self) -> ProducerIdentity:
        """The producer that may end the transaction: its writer, unless it was kept for another."""
        if self.is_kept:
            return ProducerIdentity(self.next_producer_id, self.next_producer_epoch)
        return self.producer

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is open, nor being ended."""
        return not self.state.is_prepared and self.state is not TransactionState.ONGOING

    @property
    def is_two_phase(self) -> bool:
        """Whether it never times out."""
        return self.timeout_ms == NEVER_MS

    def to(self, state: TransactionState, now_ms: int, **changes: Any) -> "Transaction":
        """Return what follows, in another state or still in the same, with other changes."""
        assert self.state in PREVIOUS[state], f"{self.state.shown} is followed by {state.shown}"
        # `dataclasses.replace` asks about each field, and each transaction comes here four times.
        fields = {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
            "timeout_ms": self.timeout_ms,
            "start_ms": self.start_ms,
            "partitions": self.partitions,
            "next_producer_id": self.next_producer_id,
            "next_producer_epoch": self.next_producer_epoch,
            "client_version": self.client_version,
            **changes,
        }
        return Transaction(
            state=state, update_ms=now_ms, previous_producer_id=self.producer_id, **fields
        )

    def begun_with(
        self, partitions: AbstractSet[TopicPartition], client_version: int, now_ms: int
    ) -> "Transaction":
        """Return the transaction with more partitions; it begins with the first."""
        is_ongoing = self.state is TransactionState.ONGOING
        return self.to(
            TransactionState.ONGOING,
            now_ms,
            partitions=self.partitions | partitions,
            start_ms=self.start_ms if is_ongoing else now_ms,
            client_version=client_version,
        )

    def completed(self, now_ms: int) -> "Transaction":
        """Return it when every partition has its marker."""
        state = (
            TransactionState.COMPLETE_COMMIT
            if self.state.is_commit
            else TransactionState.COMPLETE_ABORT
        )
        producer_id, epoch = self.producer_id, self.producer_epoch
        if self.next_producer_id != NO_PRODUCER:
            producer_id, epoch = self.next_producer_id, self.next_producer_epoch
            epoch = ProducerEpoch(0) if epoch == NO_EPOCH else epoch
        return self.to(
            state,
            now_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            partitions=frozenset(),
            next_producer_id=NO_PRODUCER,
            next_producer_epoch=NO_EPOCH,
        )
