"""Which segments have had their time."""

from collections.abc import Sequence

from moldau.kernel.ids import Offset
from moldau.log.config import LogConfig
from moldau.log.segment import Segment


def count_expired(
    segments: Sequence[Segment],
    config: LogConfig,
    *,
    log_start: Offset,
    up_to: Offset,
    end_offset: Offset,
    now_ms: int,
) -> int:
    """Return how many of the oldest segments are to go, the one that is written perhaps among them.

    A segment goes as a whole: when all of it lies below the log start or, if the topic is not only
    compacted, when its youngest record is older than `retention.ms`, or when `retention.bytes` are
    left without it. What is not below `up_to` stays in any case.
    """
    excess = sum(segment.size for segment in segments) - config.retention_bytes
    count = 0
    for number, segment in enumerate(segments):
        is_last = number == len(segments) - 1
        upper = end_offset if is_last else segments[number + 1].base_offset
        if up_to < upper or (is_last and not segment.size):
            break
        if not (
            (upper <= log_start and not is_last)
            or (config.is_deleted and config.retention_bytes >= 0 and segment.size <= excess)
            or (config.is_deleted and _is_too_old(segment, config, now_ms))
        ):
            break
        excess -= segment.size
        count = number + 1
    return count


def _is_too_old(segment: Segment, config: LogConfig, now_ms: int) -> bool:
    if config.retention_ms < 0:
        return False
    youngest = segment.largest_timestamp().timestamp
    if youngest < 0:
        # No record has a timestamp. Kafka takes the file's time, which the port does not have and
        # a copy of the directory would not keep; from when we first saw it, nothing goes early.
        youngest = segment.seen_ms
    return now_ms - youngest > config.retention_ms
