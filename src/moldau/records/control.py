"""Control records: what brokers and the quorum write into logs beside the users' records."""

import enum
from collections.abc import Sequence
from struct import Struct as Layout
from typing import Final, NamedTuple, TypeAlias

from moldau._native.records import Record
from moldau.kernel.errors import InvalidRecordError, ProtocolError
from moldau.protocol.stored.control_records import (
    EndTxnMarker,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from moldau.records.batch import CONTROL, TRANSACTIONAL, build_batch

QuorumValue: TypeAlias = (
    LeaderChangeMessage
    | SnapshotHeaderRecord
    | SnapshotFooterRecord
    | KRaftVersionRecord
    | VotersRecord
)
ControlValue: TypeAlias = EndTxnMarker | QuorumValue


class ControlType(enum.IntEnum):
    """What a control record says, by the number in its key."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class ControlRecord(NamedTuple):
    """A control record, read; one of a type that is not known here has no value."""

    type: int
    value: ControlValue | None


_QUORUM_TYPES: Final[dict[ControlType, type[QuorumValue]]] = {
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}
_TYPES_OF_QUORUM_VALUES: Final = {cls: kind for kind, cls in _QUORUM_TYPES.items()}

_KEY = Layout(">hh")  # version, type
_VERSION = Layout(">h")


def read_control_record(record: Record) -> ControlRecord:
    """Read the key and the value of a record of a control batch; `InvalidRecordError`."""
    if record.key is None or len(record.key) < _KEY.size:
        raise InvalidRecordError(f"the control record at {record.offset} has no key")
    # A newer version of the key may be longer, but begins in the same way.
    version, kind = _KEY.unpack_from(record.key)
    if version < 0:
        raise InvalidRecordError(f"the control record at {record.offset} has version {version}")
    try:
        return ControlRecord(kind, _read_value(kind, record.value or b""))
    except ProtocolError as error:
        raise InvalidRecordError(f"the control record at {record.offset}: {error}") from None


def _read_value(kind: int, value: bytes) -> ControlValue | None:
    if kind > max(ControlType) or kind < 0:
        return None
    if len(value) < _VERSION.size:
        raise ProtocolError("its value has no version")
    (version,) = _VERSION.unpack_from(value)
    if version < 0:
        raise ProtocolError(f"its value has version {version}")
    if kind in (ControlType.ABORT, ControlType.COMMIT):
        # Here the version stands in front of the message; in all others it is the first field.
        cls: type[ControlValue] = EndTxnMarker
        position = _VERSION.size
    else:
        cls = _QUORUM_TYPES[ControlType(kind)]
        position = 0
    # What is newer than we are is read as the newest that we know, and what it added is left out.
    message, _ = cls.plan(min(version, cls._versions[1])).decode_from(value, position)
    decoded: ControlValue = message
    return decoded


def build_end_transaction(
    *,
    commit: bool,
    coordinator_epoch: int,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """Build the batch with the marker that ends a transaction in one partition."""
    value = EndTxnMarker(coordinator_epoch=coordinator_epoch).encode(0)
    key = _KEY.pack(0, ControlType.COMMIT if commit else ControlType.ABORT)
    return build_batch(
        [Record(offset, timestamp, key, _VERSION.pack(0) + value)],
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        leader_epoch=leader_epoch,
    )


def build_quorum_batch(
    values: Sequence[QuorumValue], *, timestamp: int, base_offset: int, leader_epoch: int
) -> bytes:
    """Build a control batch of the metadata log or of a snapshot."""
    records = [
        Record(
            base_offset + delta,
            timestamp,
            _KEY.pack(0, _TYPES_OF_QUORUM_VALUES[type(value)]),
            value.encode(value.version),
        )
        for delta, value in enumerate(values)
    ]
    return build_batch(records, attributes=CONTROL, leader_epoch=leader_epoch)
