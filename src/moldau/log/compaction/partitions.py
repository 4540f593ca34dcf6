"""Compaction and a partition's log: what the one sees of the other, and the swap."""

from moldau.kernel.clock import Instant
from moldau.kernel.disk import Disk, DiskMissingError
from moldau.kernel.ids import Offset, Position, TopicPartition
from moldau.log.compaction.plan import ClosedSegment, LastRecord, LogView
from moldau.log.compaction.swap import Replacement, complete
from moldau.log.config import FOREVER, LogConfig
from moldau.log.file_names import OFFSET_INDEX, TIME_INDEX, segment_path
from moldau.log.partition import PartitionLog
from moldau.log.segment import Segment

AT_START = Position(0)


def view_of(
    partition: TopicPartition, log: PartitionLog, disk: Disk, *, with_producers: bool = True
) -> LogView:
    """Return what compaction has to know; sizes only, unless a lag is set.

    With `min.compaction.lag.ms` or `max.compaction.lag.ms` timestamps are read from the segments,
    which may be cold: `DiskColdError`.
    """
    segments = log.segments
    active = segments[-1]
    return LogView(
        partition,
        log.directory,
        log.config,
        log_start=log.log_start,
        stable_offset=log.stable_offset,
        log_end=log.log_end,
        active_base_offset=active.base_offset,
        segments=tuple(_closed(segment, disk, log.config) for segment in segments[:-1]),
        last_records=_last_records(log) if with_producers else {},
        active_aborted=(
            tuple(active.aborted.collect(Offset(0), Offset(FOREVER))[0]) if with_producers else ()
        ),
    )


def swap_in(
    log: PartitionLog, disk: Disk, view: LogView, replacement: Replacement, now: Instant
) -> bool:
    """Swap, on the event loop; False if the log is not what `view` has seen.

    The directory is dirty then: what is acknowledged later waits for its sync.
    """
    seen = {segment.base_offset: segment.log_bytes for segment in view.segments}
    found = {segment.base_offset: segment.size for segment in log.closed_segments}
    olds = replacement.old_base_offsets
    if any(found.get(old) != seen[old] for old in olds):
        return False
    retired = complete(disk, replacement)
    log.replace_segments(olds, replacement.base_offset, retired, now)
    return True


def _closed(segment: Segment, disk: Disk, config: LogConfig) -> ClosedSegment:
    has_lag = config.min_compaction_lag_ms > 0 and segment.size > 0
    has_bound = config.max_compaction_lag_ms < FOREVER and segment.size > 0
    offset_index_bytes, time_index_bytes = (
        _size(disk, segment_path(segment.directory, segment.base_offset, suffix))
        for suffix in (OFFSET_INDEX, TIME_INDEX)
    )
    return ClosedSegment(
        segment.base_offset,
        segment.size,
        offset_index_bytes,
        time_index_bytes,
        largest_timestamp=segment.largest_timestamp().timestamp if has_lag else -1,
        first_timestamp=segment.header_at(AT_START).max_timestamp if has_bound else -1,
    )


def _size(disk: Disk, path: str) -> int:
    try:
        return disk.size(path)
    except DiskMissingError:
        return 0  # the next reader builds it anew


def _last_records(log: PartitionLog) -> dict[int, LastRecord]:
    found = {}
    for producer_id, state in log.producers.states.items():
        last = Offset(state.batches[-1][1]) if state.batches else None
        found[producer_id] = LastRecord(state.producer_epoch, last)
    return found
