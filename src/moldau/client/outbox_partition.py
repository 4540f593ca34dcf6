"""One partition's part of the outbox: its batches in their order, and their sequence numbers."""

from collections import deque
from collections.abc import Sequence
from typing import Final

from moldau.client.outbox_events import OutboxProducer, OutgoingBatch, Shipment

SEQUENCE_MASK: Final = (1 << 31) - 1


class PartitionOutbox:
    """What is on its way to a partition; outbox.py says how it is used."""

    __slots__ = (
        "acked_until",
        "has_gap",
        "identity",
        "is_known",
        "last_error",
        "leader",
        "needs_epoch",
        "next_sequence",
        "place",
        "queue",
        "retry_at",
        "unacked",
        "window",
    )

    def __init__(self, place: tuple[str, int], leader: int | None) -> None:
        self.place = place
        self.leader = leader
        self.queue: deque[OutgoingBatch] = deque()  # without numbers
        self.unacked: deque[Shipment] = deque()  # with numbers, without an outcome
        self.window: deque[Shipment] = deque()  # all that follow the first of these
        self.identity: OutboxProducer | None = None
        self.next_sequence = 0
        self.acked_until = 0
        self.is_known = False  # something of this epoch is stored
        self.has_gap = False  # something that was sent was given up
        self.needs_epoch = False
        self.retry_at = 0.0
        self.last_error: Exception | None = None

    def number(self, batch: OutgoingBatch) -> Shipment:
        """Give a batch its place behind all others."""
        assert self.identity is not None
        shipment = Shipment(batch, self.identity, self.next_sequence)
        self.next_sequence = _after(shipment)
        self.unacked.append(shipment)
        self.window.append(shipment)
        return shipment

    def acknowledge(self, shipment: Shipment) -> None:
        """Know that a shipment is stored."""
        self.acked_until = _after(shipment)
        self.is_known = True
        self.last_error = None

    def remove(self, shipment: Shipment) -> None:
        """Be done with a shipment, stored or not."""
        shipment.is_done = True
        self.unacked.remove(shipment)
        while self.window and self.window[0].is_done:
            self.window.popleft()
        if self.has_gap and not self.unacked:
            # What was given up may have arrived: then there is no gap.
            self.has_gap = False
            if self.acked_until != self.next_sequence:
                self.needs_epoch = True

    def replace(self, shipment: Shipment, batches: Sequence[OutgoingBatch]) -> None:
        """Let batches that have its records between them take a shipment's place and numbers."""
        parts, sequence = [], shipment.sequence
        for batch in batches:
            parts.append(Shipment(batch, shipment.identity, sequence))
            sequence = _after(parts[-1])
        shipment.is_done = True
        for row in (self.unacked, self.window):
            position = row.index(shipment)
            del row[position]
            for part in reversed(parts):
                row.insert(position, part)

    def begin(self, identity: OutboxProducer, *, is_known: bool) -> None:
        """Begin with 0 in a new epoch, with everything that has no outcome."""
        self.identity = identity
        self.is_known = is_known
        self.needs_epoch = self.has_gap = False
        self.next_sequence = self.acked_until = 0
        self.window = deque(self.unacked)
        for shipment in self.unacked:
            shipment.identity = identity
            shipment.sequence = self.next_sequence
            self.next_sequence = _after(shipment)


def _after(shipment: Shipment) -> int:
    """Return the sequence number behind a shipment; they wrap to 0."""
    return (shipment.sequence + shipment.batch.record_count) & SEQUENCE_MASK
