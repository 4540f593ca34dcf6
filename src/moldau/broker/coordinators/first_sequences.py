"""Which sequence numbers came first for a transaction's partitions that are not written to yet.

A batch whose verification fails for now is sent again, and the one behind it may be faster. Where
the log knows nothing of the producer yet, only this tells that something is missing before it.
"""

from typing import Final

from moldau._native.records import Batch
from moldau.kernel.ids import TopicPartition
from moldau.log.errors import ProducerError
from moldau.protocol.errors import ErrorCode
from moldau.replication.replica import Replica

KEPT_MAX: Final = 10_000
"""The oldest are forgotten beyond it: their producers have not come back."""


class FirstSequences:
    """The lowest sequence number of the latest epoch, by partition and producer."""

    def __init__(self) -> None:
        self._lowest: dict[tuple[TopicPartition, int], tuple[int, int]] = {}

    def seen(self, partition: TopicPartition, batch: Batch) -> None:
        """Take note of a batch before its partition is verified."""
        key = partition, batch.producer_id
        epoch, sequence = batch.producer_epoch, batch.base_sequence
        known = self._lowest.pop(key, None)
        if known is not None and (known[0] > epoch or (known[0] == epoch and known[1] < sequence)):
            epoch, sequence = known
        elif known is None and len(self._lowest) >= KEPT_MAX:
            del self._lowest[next(iter(self._lowest))]
        self._lowest[key] = epoch, sequence

    def check(self, replica: Replica, batch: Batch, *, begins_at_zero: bool) -> None:
        """Refuse a batch before which another is missing; one that is let through was the first."""
        key = replica.partition, batch.producer_id
        lowest = self._lowest.get(key)
        assert replica.log is not None, "it leads"
        is_new = batch.producer_id not in replica.log.producers.states
        sequence = batch.base_sequence
        if (begins_at_zero and is_new and sequence != 0) or (
            lowest is not None and lowest[0] == batch.producer_epoch and sequence > lowest[1]
        ):
            raise ProducerError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {batch.producer_id} sent sequence number {sequence}, "
                f"and nothing of its transaction is here before it",
            )
        self._lowest.pop(key, None)
