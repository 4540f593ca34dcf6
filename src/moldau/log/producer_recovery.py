"""The producers' state as of an offset: a snapshot, and the batches behind it."""

from collections.abc import Iterable, Sequence

from moldau._native.log import Tail
from moldau._native.records import Batch, read_batches
from moldau._native.segment_scan import SegmentScan
from moldau.kernel.disk import Disk
from moldau.kernel.ids import Offset, Position
from moldau.log.config import FOREVER
from moldau.log.errors import CorruptLogError, CorruptSnapshotError
from moldau.log.extents import segment_number_of
from moldau.log.file_names import SNAPSHOT, segment_path
from moldau.log.producer_snapshots import decode_snapshot
from moldau.log.producers import Producers
from moldau.log.segment import Segment
from moldau.log.segment_scan import read_whole, scan_segment
from moldau.log.unstable import CompletedTransaction


def load_producers(
    disk: Disk, segments: Sequence[Segment], snapshots: Sequence[Offset], end_offset: Offset
) -> Producers:
    """Return the state after all batches that end below `end_offset`."""
    start, producers = find_snapshot(disk, segments[0].directory, snapshots, end_offset)
    start = max(start, segments[0].base_offset)
    for segment in segments[max(0, segment_number_of(segments, start)) :]:
        if max(start, segment.base_offset) >= end_offset:
            break
        found = segment.find(max(start, segment.base_offset))
        if found is None:
            continue
        tail = Tail(segment.base_offset, created_ms=0, position=found.position)
        scan = SegmentScan(tail, size=segment.size, check_from=FOREVER)
        for _, batches in scan_segment(disk, segment.path, scan, segment.size):
            replay(producers, disk, segment, batches, start, end_offset)
        if scan.failure is not None:
            raise CorruptLogError(segment.path, scan.tail.position, scan.failure)
    producers.mark()
    return producers


def find_snapshot(
    disk: Disk, directory: str, snapshots: Sequence[Offset], end_offset: Offset
) -> tuple[Offset, Producers]:
    """Return the newest snapshot up to `end_offset` that is whole, or no producers at offset 0."""
    for offset in sorted(snapshots, reverse=True):
        if offset <= end_offset:
            path = segment_path(directory, offset, SNAPSHOT)
            try:
                return offset, Producers(decode_snapshot(path, read_whole(disk, path)))
            except CorruptSnapshotError:
                continue
    return Offset(0), Producers()


def replay(
    producers: Producers,
    disk: Disk,
    segment: Segment,
    batches: Iterable[Batch],
    start_offset: Offset,
    end_offset: int = FOREVER,
) -> list[CompletedTransaction]:
    """Apply batches that a scan has found; return the transactions that were aborted by them."""
    aborted = []
    for batch in batches:
        if batch.base_offset < start_offset or batch.last_offset >= end_offset:
            continue
        if not batch.is_control:
            producers.apply(batch, segment.base_offset, Position(batch.position))
            continue
        data = disk.read(segment.path, batch.position, batch.size)
        for marker in read_batches(data, check_crc=False):
            completed = producers.replay(
                marker, data, segment.base_offset, Position(batch.position)
            )
            if completed is not None and completed.is_abort:
                aborted.append(completed)
    return aborted
