"""What to compact: which partition is dirtiest, up to which offset, and in which groups."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from moldau.kernel.ids import Offset, ProducerEpoch, TopicPartition
from moldau.log.aborted_index import AbortedTransaction
from moldau.log.config import LogConfig

RELATIVE_OFFSET_MAX: Final = (1 << 31) - 1
GROUP_SEGMENTS_MAX: Final = 32
"""How many segments become one at a time: each means five renames on the event loop."""


@dataclass(frozen=True, slots=True)
class ClosedSegment:
    """A segment that is no longer written; timestamps are -1 where there are none."""

    base_offset: Offset
    log_bytes: int
    offset_index_bytes: int
    time_index_bytes: int
    largest_timestamp: int
    first_timestamp: int
    """The largest timestamp of the first batch: about when the segment was begun."""


@dataclass(frozen=True, slots=True)
class LastRecord:
    """The last that is known of a producer; `last_data_offset` is None after a new epoch."""

    producer_epoch: ProducerEpoch
    last_data_offset: Offset | None


@dataclass(frozen=True, slots=True)
class LogView:
    """A partition as it was at one moment on the event loop; a thread may work with it."""

    partition: TopicPartition
    directory: str
    config: LogConfig
    log_start: Offset
    stable_offset: Offset
    log_end: Offset
    active_base_offset: Offset
    segments: tuple[ClosedSegment, ...]
    last_records: Mapping[int, LastRecord] = field(default_factory=dict)
    """Of every active producer, by its id."""
    active_aborted: tuple[AbortedTransaction, ...] = ()
    """What the active segment's index has: transactions end in it that began further down."""


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """What one compaction of a partition would do."""

    log: LogView
    first_dirty: Offset
    """Where the last compaction ended."""
    end: Offset
    """The base offset of the first segment that must not be touched."""
    clean_bytes: int
    dirty_bytes: int
    overdue_ms: int
    """By how much `max.compaction.lag.ms` is missed; 0: it is not."""
    checkpoint_was_wrong: bool
    """The offset in cleaner-offset-checkpoint is not in the log: write `first_dirty` there."""

    @property
    def dirty_ratio(self) -> float:
        """How much of what could be compacted was not yet."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        """Whether it is worth the effort by now."""
        if self.dirty_bytes > 0 and self.overdue_ms > 0:
            return True
        return self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def make_plan(log: LogView, cleaned_to: Offset | None, now_ms: int) -> CompactionPlan:
    """Say what a compaction would do now; `cleaned_to` is from cleaner-offset-checkpoint."""
    first_dirty = log.log_start if cleaned_to is None else cleaned_to
    is_wrong = not log.log_start <= first_dirty <= log.log_end
    if is_wrong:
        # Segments went away below it, or the end of the log was lost: nothing is known to be clean.
        first_dirty = log.log_start
    dirty = segments_from(log, first_dirty)
    bound = max(first_dirty, _uncleanable_offset(log, dirty, now_ms))
    open_segment = next(iter(segments_from(log, bound)), None)
    end = log.active_base_offset if open_segment is None else open_segment.base_offset
    cleanable = segments_from(log, min(first_dirty, end))
    return CompactionPlan(
        log,
        first_dirty,
        end,
        clean_bytes=sum(s.log_bytes for s in log.segments if s.base_offset < first_dirty),
        dirty_bytes=sum(s.log_bytes for s in cleanable if s.base_offset < end),
        overdue_ms=_overdue_ms(log.config, dirty, now_ms),
        checkpoint_was_wrong=is_wrong,
    )


def choose(plans: Iterable[CompactionPlan]) -> CompactionPlan | None:
    """Return the plan of the dirtiest partition that is due."""
    due = [plan for plan in plans if plan.is_due]
    return max(due, key=lambda plan: plan.dirty_ratio, default=None)


def segments_from(log: LogView, offset: Offset) -> Sequence[ClosedSegment]:
    """Return the segments from the one that holds `offset` on, none if the active one does."""
    if offset >= log.active_base_offset:
        return ()
    first = 0
    for number, segment in enumerate(log.segments):
        if segment.base_offset <= offset:
            first = number
    return log.segments[first:]


def group_segments(
    segments: Sequence[ClosedSegment], config: LogConfig, end: Offset
) -> list[tuple[ClosedSegment, ...]]:
    """Divide segments, all below `end`, into groups that each fit into one segment.

    Otherwise compaction would leave more and more segments with less and less in them.
    """
    groups: list[list[ClosedSegment]] = []
    for number, segment in enumerate(segments):
        last = segments[number + 1].base_offset - 1 if number + 1 < len(segments) else end - 1
        if groups and _fits(groups[-1], segment, Offset(last), config):
            groups[-1].append(segment)
        else:
            groups.append([segment])
    return [tuple(group) for group in groups]


def _fits(
    group: list[ClosedSegment], segment: ClosedSegment, last: Offset, config: LogConfig
) -> bool:
    together = [*group, segment]
    return (
        len(together) <= GROUP_SEGMENTS_MAX
        and sum(s.log_bytes for s in together) <= config.segment_bytes
        and sum(s.offset_index_bytes for s in together) <= config.segment_index_bytes
        and sum(s.time_index_bytes for s in together) <= config.segment_index_bytes
        # An empty segment adds no offset, so a range without records does not keep it apart.
        and (segment.log_bytes == 0 or last - group[0].base_offset <= RELATIVE_OFFSET_MAX)
    )


def _uncleanable_offset(log: LogView, dirty: Sequence[ClosedSegment], now_ms: int) -> Offset:
    """Return the first offset that must stay as it is: undecided, being written, or too young."""
    bound = min(log.stable_offset, log.active_base_offset)
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in dirty:
            if segment.largest_timestamp > now_ms - lag_ms:
                return min(bound, segment.base_offset)
    return bound


def _overdue_ms(config: LogConfig, dirty: Sequence[ClosedSegment], now_ms: int) -> int:
    begun = [s.first_timestamp for s in dirty if s.first_timestamp > 0]
    if not begun:
        return 0
    return max(0, now_ms - max(config.max_compaction_lag_ms, 0) - min(begun))
