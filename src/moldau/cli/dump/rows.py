"""What is in the files of a data directory, as rows for JSON; `text.py` says them in words."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from moldau._native.producers import last_sequence_of
from moldau._native.records import Record
from moldau.cli.dump import indexes
from moldau.cli.dump.coordinators import read_state, topic_of
from moldau.cli.dump.messages import as_json, read_control, type_name
from moldau.cli.dump.segment import SegmentFile, StoredBatch
from moldau.cli.printing import text_or_base64
from moldau.kernel.errors import ProtocolError
from moldau.log.checkpoints import (
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    parse_offsets,
)
from moldau.log.leader_epochs import LEADER_EPOCH_CHECKPOINT
from moldau.metadata.errors import UnknownRecordError
from moldau.metadata.record_frame import decode_record, version_of
from moldau.records.compression import Codec

DumpRow: TypeAlias = dict[str, object]

METADATA_FOLDER: Final = "__cluster_metadata-0"
OFFSET_CHECKPOINTS: Final = (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, CLEANED_OFFSETS)


def rows_of(path: Path, *, deep: bool) -> Iterator[DumpRow]:
    """Read a file; what is wrong in it are rows of the kind `fault`."""
    try:
        yield from _reader_of(path)(path, deep)
    except indexes.DAMAGES as error:
        yield _fault(path, str(error).removeprefix(f"{path}: "))


def is_known(path: Path) -> bool:
    """Whether it is a file that can be read here."""
    return path.suffix in _READERS or path.name in _NAMED_READERS


def _reader_of(path: Path) -> Callable[[Path, bool], Iterator[DumpRow]]:
    return _NAMED_READERS.get(path.name) or _READERS[path.suffix]


def _fault(path: Path, reason: str) -> DumpRow:
    return {"kind": "fault", "file": str(path), "reason": reason}


def _segment_rows(path: Path, deep: bool) -> Iterator[DumpRow]:  # noqa: FBT001 - one signature for all
    segment = SegmentFile(path)
    reader = _record_row
    if path.suffix == ".checkpoint" or path.parent.name == METADATA_FOLDER:
        reader = _metadata_row
    elif topic := topic_of(path.parent.name):
        reader = partial(_state_row, topic)
    next_offset = -1
    for stored in segment.batches():
        batch = stored.batch
        yield batch_row(stored)
        if not stored.is_valid:
            yield _fault(path, f"the checksum of the batch at byte {batch.position} is wrong")
        if batch.base_offset < next_offset:
            yield _fault(path, f"offset {batch.base_offset} stands behind {next_offset - 1}")
        next_offset = batch.last_offset + 1
        if deep:
            yield from _record_rows(path, stored, reader)
    if segment.trailing_bytes:
        yield _fault(
            path, f"{segment.trailing_bytes} bytes from {segment.end} on are no whole batch"
        )


def batch_row(stored: StoredBatch) -> DumpRow:
    """Return what a batch's header says."""
    batch = stored.batch
    return {
        "kind": "batch",
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "records": batch.record_count,
        "max_timestamp": batch.max_timestamp,
        "timestamp_type": "LogAppendTime" if batch.is_log_append_time else "CreateTime",
        "codec": Codec(batch.codec).name.lower(),
        "position": batch.position,
        "bytes": batch.size,
        "leader_epoch": batch.leader_epoch,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "last_sequence": last_sequence_of(batch.base_sequence, batch.last_offset_delta),
        "transactional": batch.is_transactional,
        "control": batch.is_control,
        "crc": batch.crc,
        "valid": stored.is_valid,
    }


def _record_rows(
    path: Path, stored: StoredBatch, reader: Callable[[Record], DumpRow]
) -> Iterator[DumpRow]:
    try:
        for record in stored.records():
            yield _control_row(record) if stored.batch.is_control else reader(record)
    except (ProtocolError, UnknownRecordError) as error:
        yield _fault(path, f"the batch at byte {stored.batch.position}: {error}")


def _record_row(record: Record) -> DumpRow:
    return {
        "kind": "record",
        "offset": record.offset,
        "timestamp": record.timestamp,
        **text_or_base64("key", record.key),
        **text_or_base64("value", record.value),
        "headers": [
            {"name": name, **text_or_base64("value", value)} for name, value in record.headers
        ],
    }


def _control_row(record: Record) -> DumpRow:
    control, name = read_control(record)
    value = control.value
    data = {} if value is None else as_json(value, getattr(value, "version", 0))
    return {"kind": "control", "offset": record.offset, "type": name, "data": data}


def _metadata_row(record: Record) -> DumpRow:
    value = record.value or b""
    message, version = decode_record(value), version_of(value)
    return {
        "kind": "metadata",
        "offset": record.offset,
        "type": type_name(message),
        "version": version,
        "data": as_json(message, version),
    }


def _state_row(topic: str, record: Record) -> DumpRow:
    state = read_state(topic, record)
    if state is None:
        return _record_row(record)
    return {
        "kind": "state",
        "offset": record.offset,
        "type": state.name,
        "key": state.key,
        "version": state.version,
        "value": state.value,
    }


def _offset_rows(path: Path, deep: bool) -> Iterator[DumpRow]:  # noqa: FBT001
    entries = indexes.read_offset_index(path)
    for entry in entries:
        yield {"kind": "index", "offset": entry.offset, "position": entry.position}
    if deep and path.with_suffix(".log").exists():
        for fault in indexes.offset_index_faults(path, entries):
            yield _fault(
                path,
                f"the entry of offset {fault.entry.offset} leads to a batch up to {fault.found}",
            )


def _time_rows(path: Path, deep: bool) -> Iterator[DumpRow]:  # noqa: FBT001
    entries = indexes.read_time_index(path)
    for entry in entries:
        yield {"kind": "time", "timestamp": entry.timestamp, "offset": entry.offset}
    if deep and path.with_suffix(".log").exists():
        for fault in indexes.time_index_faults(path, entries):
            yield _fault(
                path,
                f"the entry of offset {fault.entry.offset} does not fit the segment: {fault.kind}"
                f" {fault.found}",
            )


def _aborted_rows(path: Path, deep: bool) -> Iterator[DumpRow]:  # noqa: ARG001, FBT001
    for entry in indexes.read_aborted_index(path):
        yield {"kind": "aborted", **entry._asdict()}


def _producer_rows(path: Path, deep: bool) -> Iterator[DumpRow]:  # noqa: ARG001, FBT001
    for state in indexes.read_producers(path):
        last_sequence, last_offset, *_ = state.batches[-1] if state.batches else (-1, -1)
        yield {
            "kind": "producer",
            "producer_id": state.producer_id,
            "producer_epoch": state.producer_epoch,
            "coordinator_epoch": state.coordinator_epoch,
            "last_sequence": last_sequence,
            "last_offset": last_offset,
            "last_timestamp": state.last_timestamp,
            "transaction_first_offset": state.transaction_first_offset,
        }


def _epoch_rows(path: Path, deep: bool) -> Iterator[DumpRow]:  # noqa: ARG001, FBT001
    for epoch, start in indexes.read_leader_epochs(path):
        yield {"kind": "epoch", "leader_epoch": epoch, "start_offset": start}


def _checkpoint_rows(path: Path, deep: bool) -> Iterator[DumpRow]:  # noqa: ARG001, FBT001
    for place, offset in parse_offsets(str(path), path.read_bytes()).items():
        yield {
            "kind": "offset",
            "topic": place.topic,
            "partition": place.partition,
            "offset": offset,
        }


_READERS: Final = {
    ".log": _segment_rows,
    ".checkpoint": _segment_rows,
    ".index": _offset_rows,
    ".timeindex": _time_rows,
    ".txnindex": _aborted_rows,
    ".snapshot": _producer_rows,
}
_NAMED_READERS: Final = {
    LEADER_EPOCH_CHECKPOINT: _epoch_rows,
    **dict.fromkeys(OFFSET_CHECKPOINTS, _checkpoint_rows),
}
