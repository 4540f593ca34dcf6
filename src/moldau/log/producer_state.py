"""What a partition remembers of one idempotent producer."""

from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeAlias

from moldau.kernel.ids import Offset, ProducerEpoch, ProducerId

NO_OFFSET: Final = Offset(-1)
BATCHES_KEPT: Final = 5  # as many as a client has in flight, so any of them can be resent
SEQUENCE_MASK: Final = (1 << 31) - 1  # sequence numbers wrap to 0 after it


def last_sequence_of(base_sequence: int, last_offset_delta: int) -> int:
    """Return a batch's last sequence number; -1 if it has none (a coordinator's batch)."""
    return (base_sequence + last_offset_delta) & SEQUENCE_MASK if base_sequence >= 0 else -1


class WrittenBatch(NamedTuple):
    """Where a batch is in the log: the answer to its being sent again."""

    first_offset: Offset
    last_offset: Offset
    timestamp: int


KeptBatch: TypeAlias = tuple[int, int, int, int]
"""Last sequence number, last offset, last offset less the first, timestamp.

One is made for every batch that is produced, so it is a plain tuple.
"""


@dataclass(slots=True)
class ProducerState:
    """A producer's epoch, its last batches in that epoch, and its open transaction."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    transaction_first_offset: Offset = NO_OFFSET  # none is open
    next_sequence: int = 0  # the only one that may follow in this epoch
    batches: list[KeptBatch] = field(default_factory=list)

    def copy(self) -> "ProducerState":
        """Return the state as it is, to go back to."""
        return replace(self, batches=self.batches.copy())

    def find_duplicate(self, base_sequence: int, last_offset_delta: int) -> WrittenBatch | None:
        """Return the batch of this epoch that has exactly this range of sequence numbers."""
        last_sequence = last_sequence_of(base_sequence, last_offset_delta)
        for sequence, last_offset, delta, timestamp in self.batches:
            if sequence == last_sequence and delta == last_offset_delta:
                return WrittenBatch(Offset(last_offset - delta), Offset(last_offset), timestamp)
        return None

    def enter_epoch(self, producer_epoch: ProducerEpoch) -> None:
        """Sequence numbers begin anew with an epoch, so the batches before it go."""
        if producer_epoch != self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.next_sequence = 0
            self.batches.clear()

    def add(self, batch: KeptBatch) -> None:
        """Remember a batch, and forget the oldest if there are too many."""
        batches = self.batches
        if len(batches) == BATCHES_KEPT:
            del batches[0]
        batches.append(batch)
        self.next_sequence = (batch[0] + 1) & SEQUENCE_MASK
        self.last_timestamp = batch[3]

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Return whether it was idle for `producer.id.expiration.ms`; never in a transaction."""
        return self.transaction_first_offset < 0 and now_ms - self.last_timestamp >= expiration_ms
