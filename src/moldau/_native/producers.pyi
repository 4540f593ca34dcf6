"""The producers' kernel: what a partition remembers of each idempotent producer."""

from collections.abc import Iterable
from typing import TypeAlias, final

from moldau._native.records import Batch
from moldau.kernel.ids import Offset, ProducerEpoch, ProducerId

KeptBatch: TypeAlias = tuple[int, int, int, int]
"""Last sequence number, last offset, last offset less the first, timestamp."""

def last_sequence_of(base_sequence: int, last_offset_delta: int, /) -> int:
    """Return a batch's last sequence number; -1 if it has none (a coordinator's batch)."""

@final
class ProducerState:
    """A producer's epoch, its last batches in that epoch, and its open transaction."""

    transaction_first_offset: Offset
    """-1: none is open."""
    coordinator_epoch: int
    last_timestamp: int

    def __init__(
        self,
        producer_id: ProducerId,
        producer_epoch: ProducerEpoch,
        coordinator_epoch: int = -1,
        last_timestamp: int = -1,
        transaction_first_offset: Offset = ...,
        next_sequence: int = 0,
        batches: Iterable[KeptBatch] = (),
    ) -> None: ...
    @property
    def producer_id(self) -> ProducerId: ...
    @property
    def producer_epoch(self) -> ProducerEpoch: ...
    @property
    def next_sequence(self) -> int:
        """The only one that may follow in this epoch."""

    @property
    def batches(self) -> list[KeptBatch]:
        """The last five, as many as a client has in flight; the oldest first."""

    def copy(self) -> ProducerState:
        """Return the state as it is."""

    def enter_epoch(self, producer_epoch: ProducerEpoch, /) -> None:
        """Sequence numbers begin anew with an epoch, so the batches before it go."""

    def add(self, batch: KeptBatch, /) -> None:
        """Remember a batch, and forget the oldest if there are too many."""

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Return whether it was idle for `producer.id.expiration.ms`; never in a transaction."""

class ProducerTable:
    """The producers of a partition by their ids; what changes can be taken back until `mark`."""

    has_completed: bool
    """Whether a transaction has its marker above the high watermark."""

    def __init__(self, states: Iterable[ProducerState] = ()) -> None: ...
    @property
    def states(self) -> dict[int, ProducerState]:
        """Every producer by its id; to look at."""

    def follows(self, batch: Batch, /) -> bool:
        """Say whether a client's batch is simply a producer's next, or its first here."""

    def change(self, batch: Batch, /) -> ProducerState:
        """Return the state that a batch changes, and remember what it was."""

    def note(self, batch: Batch, /) -> ProducerState:
        """Note a data batch whose offset is assigned; return its producer."""

    def mark(self) -> None:
        """What was noted is written."""

    def forget_changes(self) -> None:
        """Be as at the last mark."""

    def replace_states(self, states: Iterable[ProducerState], /) -> None:
        """Know these producers, and no others."""
