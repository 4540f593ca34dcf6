"""What a partition remembers of a producer, slow and readable: what the kernel must agree with."""

from dataclasses import dataclass, field, replace

BATCHES_KEPT = 5
SEQUENCE_MASK = (1 << 31) - 1


def last_sequence_of(base_sequence: int, last_offset_delta: int) -> int:
    """Return a batch's last sequence number; -1 if it has none (a coordinator's batch)."""
    return (base_sequence + last_offset_delta) & SEQUENCE_MASK if base_sequence >= 0 else -1


@dataclass(slots=True)
class ReferenceState:
    """A producer's epoch, its last batches in that epoch, and its open transaction."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    transaction_first_offset: int = -1
    next_sequence: int = 0
    batches: list[tuple[int, int, int, int]] = field(default_factory=list)

    def copy(self) -> "ReferenceState":
        """Return the state as it is."""
        return replace(self, batches=self.batches.copy())

    def enter_epoch(self, producer_epoch: int) -> None:
        """Sequence numbers begin anew with an epoch, so the batches before it go."""
        if producer_epoch != self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.next_sequence = 0
            self.batches.clear()

    def add(self, batch: tuple[int, int, int, int]) -> None:
        """Remember a batch, and forget the oldest if there are too many."""
        self.batches = [*self.batches, batch][-BATCHES_KEPT:]
        self.next_sequence = (batch[0] + 1) & SEQUENCE_MASK
        self.last_timestamp = batch[3]

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Return whether it was idle for so long; never in a transaction."""
        return self.transaction_first_offset < 0 and now_ms - self.last_timestamp >= expiration_ms
