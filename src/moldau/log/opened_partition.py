"""Opening one partition of a log directory."""

from collections.abc import Generator
from typing import Final, NamedTuple

from moldau.kernel.disk import Disk, DiskMissingError
from moldau.kernel.ids import TopicId, TopicPartition
from moldau.log.checkpoints import CLEANED_OFFSETS, LOG_STARTS, RECOVERY_POINTS
from moldau.log.config import LogConfig
from moldau.log.errors import MalformedFileError
from moldau.log.identity import PARTITION_METADATA, parse_partition_metadata
from moldau.log.index_pages import PageCache
from moldau.log.recovery import recover_log
from moldau.log.segment_scan import read_whole
from moldau.log.state import LogState, Notice, SegmentMaker
from moldau.log.survey import Survey

OPENING_CACHE_BYTES: Final = 1 << 20


class Opened(NamedTuple):
    """A partition that was opened beside the event loop."""

    partition: TopicPartition
    is_future: bool
    topic_id: TopicId | None
    state: LogState
    maker: SegmentMaker


def open_partition(
    disk: Disk, found: Survey, partition: TopicPartition, config: LogConfig, *, now_ms: int
) -> Generator[int, None, Opened]:
    """Open a partition in slices: yields the bytes that each has read.

    Waits for the device, so it runs beside the event loop, on a disk that waits. `CorruptLogError`
    or a plain `DiskError`: this partition cannot be used.
    """
    folder = found.futures.get(partition)
    is_future = folder is not None
    folder = folder or str(partition)
    maker = SegmentMaker(disk, folder, PageCache(OPENING_CACHE_BYTES), config)
    state = yield from recover_log(
        maker,
        is_clean=found.is_clean,
        recovery_point=found.offset(RECOVERY_POINTS, partition),
        log_start=found.offset(LOG_STARTS, partition),
        now_ms=now_ms,
        compacted_to=found.offset(CLEANED_OFFSETS, partition),
    )
    topic_id = _read_topic_id(disk, folder, state.notices)
    return Opened(partition, is_future, topic_id, state, maker)


def _read_topic_id(disk: Disk, folder: str, notices: list[Notice]) -> TopicId | None:
    path = f"{folder}/{PARTITION_METADATA}"
    try:
        return parse_partition_metadata(path, read_whole(disk, path))
    except DiskMissingError:
        notices.append(Notice(path, "is missing: the topic's id is not known"))
    except MalformedFileError as error:
        notices.append(Notice(path, f"{error.reason}: the topic's id is not known"))
    return None
