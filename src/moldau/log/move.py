"""A partition's log on its way from one log directory of a broker to another."""

from enum import Enum
from typing import Final

from moldau._native.records import read_batches
from moldau.kernel.clock import Instant
from moldau.kernel.disk import Buffer
from moldau.kernel.ids import Offset, TopicPartition
from moldau.log.directory import LogDirectory
from moldau.log.extents import Extent, Isolation, segment_number_of
from moldau.log.partition import PartitionLog

SLICE_BYTES: Final = 256 << 10


class Stage(Enum):
    """How far a move is."""

    COPYING = "copying"
    SWITCHED = "switched"
    RETIRED = "retired"
    PROMOTED = "promoted"


class Move:
    """The steps of a move, in an order that a crash between any two does not hurt.

        COPYING   take      -> COPYING    a slice of the log is appended to the copy
        COPYING   switch    -> SWITCHED   the copy has everything: it is the log from now on
        SWITCHED  retire    -> RETIRED    the old folder becomes one that is to be deleted
        RETIRED   promote   -> PROMOTED   the copy's folder gets the log's name
        PROMOTED  finish                  what was appended meanwhile may be acknowledged

    Before `retire` the copy is synced, and before `promote` and `finish` the name that changed, so
    that after a crash there is either the old log, with all that was acknowledged, or only the
    copy, with the same. In between the copy vouches for nothing that is not durable in the old log.
    There are never two folders with the log's name.
    """

    def __init__(
        self, partition: TopicPartition, source: LogDirectory, target: LogDirectory
    ) -> None:
        self.partition = partition
        self.source = source
        self.target = target
        self.stage = Stage.COPYING

    @property
    def log(self) -> PartitionLog:
        """The log that is moved."""
        return self.source.get(self.partition)

    @property
    def copy(self) -> PartitionLog:
        """What comes in its place."""
        return self.target.get(self.partition)

    @property
    def lag(self) -> int:
        """How many offsets the copy is behind."""
        return self.log.log_end - self.copy.log_end

    def begin(self, start: Offset, now: Instant) -> None:
        """Make an empty copy that begins at `start`; the target was lowered before."""
        topic_id = self.source.topic_ids[self.partition]
        self.target.create_future(self.partition, topic_id, self.log.config, start, now)

    @property
    def start(self) -> Offset:
        """Where a copy begins: at the log start, or with the batch that holds it."""
        return self._begin_of_batch(self.log.log_start)

    def _begin_of_batch(self, offset: Offset) -> Offset:
        """Return where the batch begins that holds an offset; itself if none does."""
        segments = self.log.segments
        for segment in segments[max(0, segment_number_of(segments, offset)) :]:
            found = segment.find(offset)
            if found is not None:
                return Offset(min(offset, segment.header_at(found.position).base_offset))
        return offset

    @property
    def is_overtaken(self) -> bool:
        """Whether the log begins behind the copy's end: the copy has to start over.

        With a hole in it, recovery would take it for damaged.
        """
        end = self.copy.log_end
        return end < self.log.log_start and end < self.start

    @property
    def is_resumable(self) -> bool:
        """Whether a copy from before a restart can be gone on with, cut at the log's end.

        A crash may have taken names from it that were never synced, those of the first files too;
        then it may end inside a batch, where the log starts.
        """
        topic_id = self.target.topic_ids.get(self.partition)
        is_of_topic = topic_id is not None and topic_id == self.source.topic_ids.get(self.partition)
        end = min(self.copy.log_end, self.log.log_end)
        return (
            is_of_topic
            and self.copy.log_start <= self.log.log_start
            and self._begin_of_batch(end) == end
        )

    def next_extent(self) -> Extent | None:
        """Return what is to be copied next, None if the copy has all batches or must start over."""
        log = self.log
        offset = max(self.copy.log_end, log.log_start)
        if offset >= log.written_offset or self.is_overtaken:
            return None
        return log.read(offset, bytes_max=SLICE_BYTES, isolation=Isolation.LOG_END).extent

    def take(self, data: Buffer, now: Instant) -> None:
        """Append a slice to the copy; a batch that is cut off at its end comes with the next.

        `StorageFullError`: there is no room for it, and nothing of it is in the copy.
        """
        assert self.stage is Stage.COPYING, self.stage
        copy = self.copy
        batches = read_batches(data)
        size = batches[-1].position + batches[-1].size
        copy.append_assigned(memoryview(data)[:size], batches, now=now)
        copy.write()
        copy.advance_high_watermark(self.log.high_watermark)
        self.target.note_change(self.partition, now)

    def switch(self, now: Instant) -> PartitionLog:
        """Let the copy, which has all batches, be the log; return it. Nothing may be staged.

        `DiskFullError`: nothing has changed. Directly after it the copy is to be synced.
        """
        assert self.stage is Stage.COPYING, self.stage
        log, copy = self.log, self.copy
        copy.succeed(log, now)
        copy.hold(log.durable_offset)
        self.target.futures.discard(self.partition)
        cleaned_to = self.source.cleaned_to(self.partition)
        if cleaned_to is not None:
            self.target.set_cleaned_to(self.partition, cleaned_to)
        self.target.sync_soon(self.partition)
        self.stage = Stage.SWITCHED
        return copy

    def retire(self) -> str | None:
        """Take the old log out; return the folder whose files are then to be removed, if any."""
        assert self.stage is Stage.SWITCHED, self.stage
        self.target.get(self.partition)  # which raises if only the old log can be used by now
        folder = self.source.delete(self.partition)
        self.stage = Stage.RETIRED
        return folder

    def promote(self) -> None:
        """Give the copy's folder the log's name."""
        assert self.stage is Stage.RETIRED, self.stage
        self.target.promote(self.partition)
        self.stage = Stage.PROMOTED

    def finish(self) -> PartitionLog:
        """Let the log vouch for what is durable in it; return it."""
        assert self.stage is Stage.PROMOTED, self.stage
        self.copy.release()
        return self.copy
