"""Snapshots of all producers of a partition as of an offset (`.snapshot`), with a checksum."""

from collections.abc import Iterable
from struct import Struct
from typing import Final

from moldau._native.producers import ProducerState
from moldau._native.records import crc32c
from moldau.kernel.errors import ProtocolError
from moldau.kernel.ids import Offset, ProducerEpoch, ProducerId
from moldau.log.errors import CorruptSnapshotError
from moldau.log.producer_state import NO_OFFSET
from moldau.protocol.stored.producer_snapshot import ProducerEntry, ProducerSnapshot

VERSION: Final = 1

_HEAD = Struct(">hI")  # version, and the checksum of all that follows
_CRC_BYTES: Final = 4


def encode_snapshot(states: Iterable[ProducerState]) -> bytes:
    """Return a snapshot file; of each producer's batches it keeps the last."""
    snapshot = ProducerSnapshot(producer_entries=[_entry(state) for state in states])
    entries = snapshot.encode(VERSION)[_CRC_BYTES:]
    return _HEAD.pack(VERSION, crc32c(entries)) + entries


def decode_snapshot(path: str, data: bytes) -> list[ProducerState]:
    """Read a snapshot file; `CorruptSnapshotError` if it is not whole."""
    if len(data) < _HEAD.size:
        raise CorruptSnapshotError(path, f"{len(data)} bytes are too few for a snapshot")
    version, crc = _HEAD.unpack_from(data)
    if version != VERSION:
        raise CorruptSnapshotError(path, f"version {version} is not known")
    found = crc32c(data[_HEAD.size :])
    if found != crc:
        raise CorruptSnapshotError(path, f"checksum {crc:#x}, not {found:#x}")
    try:
        snapshot = ProducerSnapshot.decode(data[_HEAD.size - _CRC_BYTES :], VERSION)
    except ProtocolError as error:
        raise CorruptSnapshotError(path, str(error)) from error
    return [_state(entry) for entry in snapshot.producer_entries]


def _entry(state: ProducerState) -> ProducerEntry:
    last_sequence, last_offset, delta, _ = state.batches[-1] if state.batches else _NO_BATCH
    return ProducerEntry(
        producer_id=state.producer_id,
        epoch=state.producer_epoch,
        last_sequence=last_sequence,
        last_offset=last_offset,
        offset_delta=delta,
        timestamp=state.last_timestamp,
        coordinator_epoch=state.coordinator_epoch,
        current_txn_first_offset=state.transaction_first_offset,
    )


def _state(entry: ProducerEntry) -> ProducerState:
    state = ProducerState(
        ProducerId(entry.producer_id),
        ProducerEpoch(entry.epoch),
        entry.coordinator_epoch,
        entry.timestamp,
        Offset(entry.current_txn_first_offset)
        if entry.current_txn_first_offset >= 0
        else NO_OFFSET,
    )
    if entry.last_offset >= 0:
        state.add((entry.last_sequence, entry.last_offset, entry.offset_delta, entry.timestamp))
    return state


_NO_BATCH: Final = (-1, -1, 0, -1)
