"""Snapshot files: the records of an image between a header and a footer."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from moldau._native.records import read_batches
from moldau.kernel.errors import InvalidRecordError
from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.metadata.batches import decode_batch, encode_batch
from moldau.protocol.schema import Buffer, Message
from moldau.protocol.stored.control_records import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from moldau.records.batch import read_records
from moldau.records.control import QuorumValue, build_quorum_batch, read_control_record

SUFFIX: Final = ".checkpoint"
RECORDS_PER_BATCH_MAX: Final = 1_000

_NAME: Final = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


class SnapshotId(NamedTuple):
    """Which log a snapshot replaces: everything below an offset, the last of it in an epoch."""

    end_offset: Offset
    epoch: LeaderEpoch

    @property
    def file_name(self) -> str:
        """The name of the snapshot's file in the directory of the metadata log."""
        return f"{self.end_offset:020}-{self.epoch:010}{SUFFIX}"


def find_snapshot_id(file_name: str) -> SnapshotId | None:
    """Return the id in the name of a finished snapshot's file."""
    match = _NAME.fullmatch(file_name)
    if match is None:
        return None
    return SnapshotId(Offset(int(match[1])), LeaderEpoch(int(match[2])))


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
        yield encode_batch(
            batch, level=level, base_offset=offset, leader_epoch=epoch, timestamp=timestamp
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
