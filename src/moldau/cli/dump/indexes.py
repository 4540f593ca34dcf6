"""The small files beside a segment: its indexes, its producers, its leader epochs."""

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from moldau._native.producers import ProducerState
from moldau.cli.dump.segment import SegmentFile, StoredBatch
from moldau.kernel.errors import ProtocolError
from moldau.log.aborted_index import VERSION, AbortedTransaction
from moldau.log.errors import CorruptIndexError, CorruptSnapshotError, MalformedFileError
from moldau.log.leader_epochs import EpochStart, LeaderEpochs
from moldau.log.producer_snapshots import decode_snapshot

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")
_ABORTED_ENTRY = Struct(">hqqqq")

DAMAGES = (CorruptIndexError, CorruptSnapshotError, MalformedFileError, ProtocolError)
"""What is raised for a file that is not what it should be."""


class OffsetEntry(NamedTuple):
    """The batch whose last record is at `offset` begins at `position`."""

    offset: int
    position: int


class TimeEntry(NamedTuple):
    """No record up to `offset` is younger than `timestamp`."""

    timestamp: int
    offset: int


class IndexFault(NamedTuple):
    """An entry that the segment contradicts: what it says, and what the segment has."""

    entry: OffsetEntry | TimeEntry
    found: int
    kind: str


def base_offset_of(path: Path) -> int:
    """Return the offset in a file's name; `CorruptIndexError` if there is none."""
    stem = path.name.partition(".")[0]
    if not stem.isdecimal():
        raise CorruptIndexError(str(path), "its name does not begin with an offset")
    return int(stem)


def read_offset_index(path: Path) -> list[OffsetEntry]:
    """Read an `.index`; what was preallocated and not used is left out."""
    base = base_offset_of(path)
    entries = []
    for number, (delta, position) in enumerate(_OFFSET_ENTRY.iter_unpack(_whole(path, 8))):
        if delta == 0 and number:
            break
        entries.append(OffsetEntry(base + delta, position))
    return [] if entries == [OffsetEntry(base, 0)] else entries


def read_time_index(path: Path) -> list[TimeEntry]:
    """Read a `.timeindex`; what was preallocated and not used is left out."""
    base = base_offset_of(path)
    entries = []
    for number, (timestamp, delta) in enumerate(_TIME_ENTRY.iter_unpack(_whole(path, 12))):
        if delta == 0 and number:
            break
        entries.append(TimeEntry(timestamp, base + delta))
    return [] if entries == [TimeEntry(0, base)] else entries


def read_aborted_index(path: Path) -> list[AbortedTransaction]:
    """Read a `.txnindex`."""
    entries = []
    for version, *fields in _ABORTED_ENTRY.iter_unpack(_whole(path, _ABORTED_ENTRY.size)):
        if version != VERSION:
            raise CorruptIndexError(str(path), f"version {version} is not known")
        entries.append(AbortedTransaction(*fields))
    return entries


def read_producers(path: Path) -> list[ProducerState]:
    """Read a `.snapshot`; `CorruptSnapshotError`."""
    return decode_snapshot(str(path), path.read_bytes())


def read_leader_epochs(path: Path) -> list[EpochStart]:
    """Read a `leader-epoch-checkpoint`; `MalformedFileError`."""
    return list(LeaderEpochs.parse(str(path), path.read_bytes()).starts)


def offset_index_faults(path: Path, entries: list[OffsetEntry]) -> Iterator[IndexFault]:
    """Compare an offset index with the segment beside it."""
    segment = SegmentFile(path.with_suffix(".log"))
    for entry in entries:
        stored = _batch_at(segment, entry.position)
        found = stored.batch.last_offset if stored else -1
        if found != entry.offset:
            yield IndexFault(entry, found, "offset")


def time_index_faults(path: Path, entries: list[TimeEntry]) -> Iterator[IndexFault]:
    """Compare a time index with the segment beside it."""
    batches = SegmentFile(path.with_suffix(".log")).batches()
    stored = next(batches, None)
    before = -1
    for entry in entries:
        while stored is not None and stored.batch.last_offset < entry.offset:
            stored = next(batches, None)
        last = -1 if stored is None else stored.batch.last_offset
        if stored is None or last != entry.offset:
            yield IndexFault(entry, last, "missing")
        else:
            if stored.batch.max_timestamp != entry.timestamp:
                yield IndexFault(entry, stored.batch.max_timestamp, "timestamp")
            if before >= entry.timestamp:
                yield IndexFault(entry, before, "order")
        before = entry.timestamp


def _batch_at(segment: SegmentFile, position: int) -> StoredBatch | None:
    try:
        return next(segment.batches(position), None)
    except ProtocolError:
        return None


def _whole(path: Path, entry_bytes: int) -> bytes:
    """Read a file of whole entries."""
    data = path.read_bytes()
    if len(data) % entry_bytes:
        raise CorruptIndexError(
            str(path), f"{len(data)} bytes are not whole entries of {entry_bytes}"
        )
    return data
