"""The state of a partition that its parts share, and how new segments come to be."""

from dataclasses import dataclass

from moldau._native.append import LogEnd
from moldau._native.log import Tail
from moldau.kernel.disk import Disk
from moldau.kernel.ids import Offset
from moldau.log.config import LogConfig
from moldau.log.index_pages import PageCache
from moldau.log.leader_epochs import LeaderEpochs
from moldau.log.producers import Producers
from moldau.log.segment import Segment


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a person should hear of; `is_alarming` if records may be missing."""

    path: str
    text: str
    is_alarming: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


@dataclass(slots=True)
class SegmentMaker:
    """Makes the segments of one partition."""

    disk: Disk
    directory: str
    cache: PageCache
    config: LogConfig
    jitter: float = 0.0  # in [0, 1): this partition's share of segment.jitter.ms

    def make(self, base_offset: Offset, now_ms: int) -> Segment:
        """Return a new segment; its files come with the first write."""
        segment = Segment(self.disk, self.directory, base_offset, self.cache, seen_ms=now_ms)
        segment.tail = Tail(base_offset, created_ms=now_ms)
        self.limit(segment)
        return segment

    def open(self, base_offset: Offset, now_ms: int) -> Segment:
        """Return a segment that is on the disk already."""
        segment = Segment(self.disk, self.directory, base_offset, self.cache, seen_ms=now_ms)
        segment.size = self.disk.size(segment.path)
        segment.has_files = True
        return segment

    def limit(self, segment: Segment) -> None:
        """Tell the segment that is written when it is full."""
        if segment.tail is not None:
            self.limit_tail(segment.tail)

    def limit_tail(self, tail: Tail) -> None:
        """Set the limits of a tail as the topic's settings have them."""
        config = self.config
        tail.limit(
            bytes_max=config.segment_bytes,
            age_ms_max=config.segment_age_ms_max(self.jitter),
            interval_bytes=config.index_interval_bytes,
            index_bytes_max=config.segment_index_bytes,
        )


class LogState(LogEnd):
    """The segments of a partition, the last one being written, and what follows from them."""

    __slots__ = ("epochs", "notices", "snapshots")

    segments: list[Segment]
    producers: Producers

    def __init__(self, segments: list[Segment], log_start: Offset, synced: Offset) -> None:
        super().__init__(segments, log_start, synced)
        self.producers = Producers()
        self.epochs = LeaderEpochs()
        self.snapshots: list[Offset] = []
        self.notices: list[Notice] = []

    @property
    def active(self) -> Segment:
        """The segment that is written."""
        return self.segments[-1]


def empty_log(maker: SegmentMaker, start_offset: Offset, now_ms: int) -> LogState:
    """Return a log without records that begins at `start_offset`."""
    segment = maker.make(start_offset, now_ms)
    return LogState([segment], start_offset, start_offset)
