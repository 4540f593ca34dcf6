"""What a partition remembers of one idempotent producer."""

from typing import Final, NamedTuple

from moldau._native.producers import ProducerState, last_sequence_of
from moldau.kernel.ids import Offset

NO_OFFSET: Final = Offset(-1)


class WrittenBatch(NamedTuple):
    """Where a batch is in the log: the answer to its being sent again."""

    first_offset: Offset
    last_offset: Offset
    timestamp: int


def find_duplicate(
    state: ProducerState, base_sequence: int, last_offset_delta: int
) -> WrittenBatch | None:
    """Return the batch of this epoch that has exactly this range of sequence numbers."""
    last_sequence = last_sequence_of(base_sequence, last_offset_delta)
    for sequence, last_offset, delta, timestamp in state.batches:
        if sequence == last_sequence and delta == last_offset_delta:
            return WrittenBatch(Offset(last_offset - delta), Offset(last_offset), timestamp)
    return None
