"""Snapshot files: the records of an image between a header and a footer."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from moldau._native.records import Record, read_batches
from moldau.kernel.errors import InvalidRecordError
from moldau.metadata.batches import RECORDS_PER_BATCH_MAX, decode_batch, encode_records
from moldau.protocol.schema import Buffer, Message
from moldau.protocol.stored.control_records import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from moldau.records.batch import build_batch, read_records
from moldau.records.control import QuorumValue, build_quorum_batch, read_control_record


class Snapshot(NamedTuple):
    """What a snapshot file holds."""

    last_log_timestamp: int
    control: tuple[QuorumValue, ...]
    """The voters and their version, where the quorum is one that can change."""
    records: list[Message]


def write_snapshot(
    records: Iterable[Message],
    *,
    level: int,
    epoch: int,
    last_log_timestamp: int,
    timestamp: int,
    control: Sequence[KRaftVersionRecord | VotersRecord] = (),
) -> Iterator[bytes]:
    """Return a snapshot file piece by piece; the pieces are made as they are asked for."""
    header = SnapshotHeaderRecord(last_contained_log_timestamp=last_log_timestamp)
    yield build_quorum_batch(
        [header, *control], timestamp=timestamp, base_offset=0, leader_epoch=epoch
    )
    offset = 1 + len(control)
    rest = iter(records)
    while batch := list(islice(rest, RECORDS_PER_BATCH_MAX)):
        values = encode_records(batch, level)
        yield build_batch(
            (Record(at, timestamp, None, value) for at, value in enumerate(values, offset)),
            leader_epoch=epoch,
        )
        offset += len(batch)
    yield build_quorum_batch(
        [SnapshotFooterRecord()], timestamp=timestamp, base_offset=offset, leader_epoch=epoch
    )


def read_snapshot(data: Buffer) -> Snapshot:
    """Read a whole snapshot file; `InvalidRecordError` if its header or footer is missing."""
    control: list[QuorumValue] = []
    records: list[Message] = []
    end = 0
    for batch in read_batches(data):
        end = batch.position + batch.size
        if batch.is_control:
            for record in read_records(data, batch):
                value = read_control_record(record).value
                if isinstance(value, QuorumValue):
                    control.append(value)
        else:
            records += decode_batch(data, batch)
    if end != len(data):
        raise InvalidRecordError("the snapshot ends inside a batch")
    match control:
        case [SnapshotHeaderRecord() as header, *rest, SnapshotFooterRecord()]:
            return Snapshot(header.last_contained_log_timestamp, tuple(rest), records)
        case _:
            raise InvalidRecordError("the snapshot has no header or no footer")
