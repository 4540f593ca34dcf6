"""The state of a partition that its parts share, and how new segments come to be."""

from dataclasses import dataclass, field

from moldau._native.log import Tail
from moldau.kernel.disk import Disk
from moldau.kernel.ids import Offset
from moldau.log.config import LogConfig
from moldau.log.extents import Place
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


@dataclass(slots=True)
class LogState:
    """The segments of a partition, the last one being written, and what follows from them."""

    segments: list[Segment]
    log_start: Offset
    synced: Offset  # everything below is on the device: the recovery point
    epochs: LeaderEpochs = field(default_factory=LeaderEpochs)
    producers: Producers = field(default_factory=Producers)
    snapshots: list[Offset] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    high_watermark: Offset = field(init=False)
    high_place: Place | None = field(init=False, default=None)
    """Where the high watermark is, once that is known."""

    @property
    def active(self) -> Segment:
        """The segment that is written."""
        return self.segments[-1]

    @property
    def tail(self) -> Tail:
        """Where the log ends."""
        tail = self.segments[-1].tail
        assert tail is not None, "the last segment is written"
        return tail

    @property
    def end_offset(self) -> Offset:
        """The next offset, what is staged included."""
        return self.tail.end_offset

    @property
    def written_offset(self) -> Offset:
        """The end of what was given to the disk."""
        tail = self.segments[-1].tail  # not `self.tail`: every append asks several times
        assert tail is not None, "the last segment is written"
        return tail.marked_end_offset


def empty_log(maker: SegmentMaker, start_offset: Offset, now_ms: int) -> LogState:
    """Return a log without records that begins at `start_offset`."""
    segment = maker.make(start_offset, now_ms)
    return LogState([segment], start_offset, start_offset)
