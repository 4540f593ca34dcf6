"""Metadata records in batches: what is appended to the log in one piece."""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final

from moldau._native.records import Batch, Record, read_batches
from moldau.metadata.features import TRANSACTIONS, record_version
from moldau.metadata.record_frame import decode_record, encode_record
from moldau.protocol.schema import Buffer, Message
from moldau.protocol.stored.cluster_metadata import BeginTransactionRecord, EndTransactionRecord
from moldau.records.batch import build_batch, read_records

RECORDS_PER_BATCH_MAX: Final = 1_000
"""What is encoded, appended and replayed in one turn of the loop."""


def in_batches(
    records: Iterable[Message], level: int, *, records_max: int = RECORDS_PER_BATCH_MAX
) -> Iterator[list[Message]]:
    """Cut one decision's records into batches that take effect together.

    More than one batch becomes a transaction of metadata. Before 3.6 there were none, so there
    everything is one batch, however large.
    """
    rest = iter(records)
    batch = list(islice(rest, records_max))
    more = next(rest, None)
    if more is None or level < TRANSACTIONS:
        # The rest is empty, or has to come along.
        whole = [*batch, *([] if more is None else [more]), *rest]
        if whole:
            yield whole
        return
    yield [BeginTransactionRecord(), *batch]
    rest = chain([more], rest)
    while batch := list(islice(rest, records_max)):
        yield batch
    yield [EndTransactionRecord()]


def encode_batch(
    records: Iterable[Message], *, level: int, base_offset: int, leader_epoch: int, timestamp: int
) -> bytes:
    """Encode records of one batch, in the versions that this level of metadata.version has."""
    return build_batch(
        (
            Record(
                offset, timestamp, None, encode_record(record, record_version(type(record), level))
            )
            for offset, record in enumerate(records, base_offset)
        ),
        leader_epoch=leader_epoch,
    )


def decode_batch(data: Buffer, batch: Batch) -> list[Message]:
    """Decode the records of one batch, which is not a control batch."""
    return [decode_record(record.value or b"") for record in read_records(data, batch)]


def replayable(data: Buffer) -> Iterator[tuple[Batch, list[Message]]]:
    """Walk whole batches of the metadata log; control batches have nothing to replay."""
    for batch in read_batches(data):
        yield batch, [] if batch.is_control else decode_batch(data, batch)
