"""What `isolation.level=read_committed` leaves out: the records of aborted transactions."""

from collections.abc import Iterable, Iterator, Sequence

from moldau._native.records import Batch
from moldau.kernel.disk import Buffer
from moldau.protocol.messages.fetch import AbortedTransaction
from moldau.records.batch import read_records
from moldau.records.control import ControlType, read_control_record


def visible(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Leave out control batches, which are for brokers and clients, not for users."""
    return (batch for batch in batches if not batch.is_control)


def committed(
    data: Buffer, batches: Iterable[Batch], aborted: Sequence[AbortedTransaction]
) -> Iterator[Batch]:
    """Leave out control batches and those of aborted transactions.

    A broker names each aborted transaction by its producer and its first offset; it reaches to
    the producer's next abort marker.
    """
    coming = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
    aborting: set[int] = set()
    for batch in batches:
        while coming and coming[-1].first_offset <= batch.last_offset:
            aborting.add(coming.pop().producer_id)
        if batch.is_control:
            if batch.producer_id in aborting and _is_abort(data, batch):
                aborting.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborting):
            yield batch


def _is_abort(data: Buffer, batch: Batch) -> bool:
    # Compaction may leave a marker's batch without its record.
    records = read_records(data, batch)
    return bool(records) and read_control_record(records[0]).type == ControlType.ABORT
