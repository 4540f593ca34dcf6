"""Which bytes of which file answer a fetch, and which offset a timestamp stands for."""

from bisect import bisect_right
from collections.abc import Sequence
from enum import Enum
from operator import attrgetter
from typing import NamedTuple

from moldau._native.append import Place
from moldau._native.records import Batch, read_batches
from moldau.kernel.ids import LeaderEpoch, Offset, Position
from moldau.log.aborted_index import AbortedTransaction
from moldau.log.segment import FoundBatch, Segment
from moldau.records.batch import read_records

_base_offset = attrgetter("base_offset")


class Isolation(Enum):
    """How far a reader sees."""

    LOG_END = "log end"  # replicas
    HIGH_WATERMARK = "read_uncommitted"
    STABLE = "read_committed"


class Extent(NamedTuple):
    """A range of a file."""

    path: str
    position: Position
    length: int


class Read(NamedTuple):
    """What a reader gets: at most one extent, because a read stays in one segment."""

    extent: Extent | None
    high_watermark: Offset
    stable_offset: Offset
    log_start: Offset
    log_end: Offset
    aborted: Sequence[AbortedTransaction] = ()


class TimestampedOffset(NamedTuple):
    """A record's timestamp, offset and leader epoch."""

    timestamp: int
    offset: Offset
    leader_epoch: LeaderEpoch


def segment_number_of(segments: Sequence[Segment], offset: Offset) -> int:
    """Return the number of the segment that `offset` belongs to, -1 if it lies before the first."""
    if offset >= segments[-1].base_offset:
        return len(segments) - 1
    return bisect_right(segments, offset, key=_base_offset) - 1


def find_extent(
    segments: Sequence[Segment],
    offset: Offset,
    bound: Place,
    *,
    bytes_max: int,
    at_least_one_batch: bool,
    known: Place | None,
) -> tuple[Segment, Extent] | None:
    """Find the batches from the one that holds `offset` up to `bound`, None if there are none.

    Offsets may be missing at the end of a compacted segment: then the next one has the answer.
    `known` is where `offset` is, if that is known.
    """
    for segment in segments[max(0, segment_number_of(segments, offset)) :]:
        if segment.base_offset > bound.segment_base_offset:
            break
        is_last = segment.base_offset == bound.segment_base_offset
        end = bound.position if is_last else segment.size
        first_size = 0
        if known is not None and known.segment_base_offset == segment.base_offset:
            position = known.position
        else:
            found = segment.find(offset)
            if found is None:
                continue
            position, first_size, _ = found
        length = end - position
        if length <= 0:
            continue
        if length > bytes_max:
            size = first_size or segment.header_at(position).size
            if size > bytes_max and not at_least_one_batch:
                return None
            length = max(bytes_max, size)
        return segment, Extent(segment.path, position, min(length, end - position))
    return None


def collect_aborted(
    segments: Sequence[Segment], fetch_offset: Offset, upper_offset: Offset
) -> list[AbortedTransaction]:
    """Return the aborted transactions that touch [fetch_offset, upper_offset)."""
    found: list[AbortedTransaction] = []
    for segment in segments:
        more, is_complete = segment.aborted.collect(fetch_offset, upper_offset)
        found += more
        if is_complete:
            break
    return found


def find_by_timestamp(
    segments: Sequence[Segment], timestamp: int, log_start: Offset
) -> TimestampedOffset | None:
    """Return the first record at `log_start` or later that is not older than `timestamp`."""
    for segment in segments:
        if segment.largest_timestamp().timestamp >= timestamp:
            found = _find_in_segment(segment, timestamp, log_start)
            if found is not None:
                return found
    return None


def find_max_timestamp(segments: Sequence[Segment], log_start: Offset) -> TimestampedOffset | None:
    """Return the first record with the largest timestamp of all."""
    latest = max(segments, key=lambda segment: segment.largest_timestamp().timestamp)
    timestamp, offset = latest.largest_timestamp()
    if timestamp < 0:
        return None
    found = latest.find(max(offset, log_start))
    return None if found is None else _find_in_batch(latest, found, timestamp, log_start)


def _find_in_segment(
    segment: Segment, timestamp: int, log_start: Offset
) -> TimestampedOffset | None:
    found = segment.find(max(segment.find_time(timestamp), log_start))
    position: int = segment.size if found is None else found.position
    while position < segment.size:
        batch = segment.header_at(Position(position))
        if batch.max_timestamp >= timestamp and batch.last_offset >= log_start:
            record = _find_in_batch(segment, batch, timestamp, log_start)
            if record is not None:
                return record
        position += batch.size
    return None


def _find_in_batch(
    segment: Segment, found: Batch | FoundBatch, timestamp: int, log_start: Offset
) -> TimestampedOffset | None:
    data = segment.read_batch(found)
    for batch in read_batches(data, check_crc=False):
        for record in read_records(data, batch):
            if record.timestamp >= timestamp and record.offset >= log_start:
                return TimestampedOffset(
                    record.timestamp, Offset(record.offset), LeaderEpoch(batch.leader_epoch)
                )
    return None
