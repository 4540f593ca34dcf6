"""The log of one partition."""

from collections.abc import Sequence
from typing import NamedTuple

from moldau._native.log import assign
from moldau._native.records import Batch
from moldau.kernel.clock import Instant
from moldau.kernel.disk import Buffer
from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.log.appending import Appender
from moldau.log.config import Durability, LogConfig
from moldau.log.dirty import Dirty, DirtyFiles
from moldau.log.errors import OffsetOutOfRangeError, UnexpectedOffsetError
from moldau.log.leader_epochs import EpochEnd
from moldau.log.markers import find_marker
from moldau.log.producer_snapshots import encode_snapshot
from moldau.log.producer_state import WrittenBatch
from moldau.log.producers import Origin, Producers
from moldau.log.reading import (
    Isolation,
    Read,
    TimestampedOffset,
    collect_aborted,
    find_by_timestamp,
    find_extent,
    find_max_timestamp,
    segment_number_of,
)
from moldau.log.removal import Removal
from moldau.log.segment import Segment
from moldau.log.state import LogState, SegmentMaker
from moldau.log.truncation import truncate_fully, truncate_to
from moldau.log.validation import Checked, Writable, validate_append
from moldau.log.watermarks import Watermarks


class Appended(NamedTuple):
    """Where a batch is or, if it had been sent before, was."""

    base_offset: Offset
    last_offset: Offset
    append_time_ms: int  # -1 unless the topic has log append time
    log_start: Offset
    is_duplicate: bool = False


class PartitionLog:
    """Appends, reads and forgets; log_start <= stable_offset <= high_watermark <= log_end.

    Per wake-up: any number of appends, then one `write`, and what `take_dirty` returns is synced by
    the owner, who says `synced` when it is. The owner also moves the high watermark.
    A `DiskFailedError` from any method means that the log directory is broken, and what is in
    memory is no longer true; a `DiskColdError` means that nothing has happened yet.
    """

    __slots__ = (
        "_appender",
        "_dirty",
        "_durability",
        "_flushed_at",
        "_maker",
        "_removal",
        "_state",
        "_watermarks",
    )

    def __init__(self, state: LogState, maker: SegmentMaker, durability: Durability) -> None:
        self._state = state
        self._maker = maker
        self._durability = durability
        self._dirty = DirtyFiles(maker.directory)
        self._appender = Appender(state, maker, self._dirty)
        self._watermarks = Watermarks(state)
        self._removal = Removal(state, maker, self._appender, self._watermarks, self._dirty)
        self._flushed_at: float | None = None

    # What it is.

    @property
    def directory(self) -> str:
        """The partition's directory."""
        return self._maker.directory

    @property
    def config(self) -> LogConfig:
        """The topic's settings."""
        return self._maker.config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._maker.config = config
        self._maker.limit(self._state.active)

    @property
    def log_start(self) -> Offset:
        """The first offset that may be read."""
        return self._state.log_start

    @property
    def log_end(self) -> Offset:
        """The next offset, what is staged included."""
        return self._state.end_offset

    @property
    def written_offset(self) -> Offset:
        """The end of what was given to the disk."""
        return self._state.written_offset

    @property
    def recovery_point(self) -> Offset:
        """Below it everything is on the device."""
        return self._state.synced

    @property
    def stored_offset(self) -> Offset:
        """What this replica may vouch for, as its durability has it."""
        if self._durability is Durability.FSYNC:
            return self._state.synced
        return self._state.written_offset

    @property
    def high_watermark(self) -> Offset:
        """The end of what consumers see."""
        return self._watermarks.high

    @property
    def stable_offset(self) -> Offset:
        """The end of what read-committed consumers see."""
        return self._watermarks.stable

    @property
    def producers(self) -> Producers:
        """The idempotent producers and their transactions; to look at."""
        return self._state.producers

    @property
    def segments(self) -> Sequence[Segment]:
        """The segments; to look at."""
        return self._state.segments

    @property
    def size(self) -> int:
        """The bytes of all records."""
        return sum(segment.size for segment in self._state.segments)

    # Appending.

    def append(
        self,
        data: Writable,
        checked: Checked,
        *,
        leader_epoch: LeaderEpoch,
        now: Instant,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> Appended:
        """Stage batches that were checked by themselves, as the leader; offsets are assigned.

        They are changed where they are, and must stay there until `write`. `AppendError` refuses
        them, and changes nothing.
        """
        config = self._maker.config
        state = self._state
        data, batches = validate_append(config, data, checked, origin=origin, now_ms=now.wall_ms)
        for batch in batches:
            if batch.producer_id >= 0:
                duplicate = self._check_producer(data, batch, origin, transaction_version)
                if duplicate is not None:
                    return Appended(*duplicate, state.log_start, is_duplicate=True)
        append_time = now.wall_ms if config.message_timestamp_type == "LogAppendTime" else -1
        base_offset = state.end_offset
        end = assign(
            data,
            batches,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            append_time=append_time,
        )
        self._appender.stage(data, batches, now)
        return Appended(base_offset, Offset(end - 1), append_time, state.log_start)

    def _check_producer(
        self, data: Writable, batch: Batch, origin: Origin, transaction_version: int
    ) -> WrittenBatch | None:
        producers = self._state.producers
        if not batch.is_control:
            return producers.check(batch, origin)
        marker = find_marker(batch, data)
        if marker is not None:
            producers.check_marker(batch, marker, transaction_version=transaction_version)
        return None

    def append_stored(self, data: Buffer, batches: list[Batch], *, now: Instant) -> None:
        """Stage batches that have their offsets and epochs, as a follower or from the quorum."""
        end = self._state.end_offset
        for batch in batches:
            if not end <= batch.base_offset <= batch.last_offset:
                raise UnexpectedOffsetError(
                    f"{self.directory}: a batch from {batch.base_offset} to {batch.last_offset} "
                    f"does not follow {end}"
                )
            end = Offset(batch.last_offset + 1)
        if batches:
            self._appender.stage(data, batches, now)

    def write(self) -> None:
        """Give everything that was staged to the disk.

        `StorageFullError` if there is no room: then none of it is in the log, and everybody who
        appended since the last write gets that error.
        """
        if not self._appender.is_clean:
            self._appender.write()
            self._watermarks.note_write()

    # Durability.

    def is_sync_due(self, now: Instant) -> bool:
        """Return whether what is dirty should be synced now."""
        if self._durability is Durability.MEMORY or not self._dirty:
            return False
        if self._durability is Durability.FSYNC or self._dirty.has_closed:
            return True
        config = self._maker.config
        if self._flushed_at is None:
            self._flushed_at = now.monotonic
        return (
            self._state.written_offset - self._state.synced >= config.flush_messages
            or (now.monotonic - self._flushed_at) * 1000 >= config.flush_ms
        )

    def take_dirty(self, now: Instant) -> Dirty:
        """Hand out what is to be synced; it gathers anew from here on."""
        self._flushed_at = now.monotonic
        return self._dirty.take(self._state.written_offset)

    def synced(self, dirty: Dirty) -> None:
        """Everything in `dirty` is on the device."""
        state = self._state
        # The log may have been cut since.
        state.synced = max(state.synced, min(dirty.end_offset, self._removal.sync_limit(dirty)))
        for segment in dirty.segments:
            segment.is_durable = True

    # The watermark.

    def advance_high_watermark(self, offset: Offset) -> bool:
        """Let consumers see up to `offset`; say whether that is new."""
        return self._watermarks.advance(offset)

    # Reading.

    def read(
        self,
        offset: Offset,
        *,
        bytes_max: int,
        isolation: Isolation,
        at_least_one_batch: bool = True,
    ) -> Read:
        """Return where the batches from the one that holds `offset` on are.

        At most `bytes_max`, so that the last may be cut, but the first is whole if
        `at_least_one_batch`; nothing at all if it does not fit otherwise.
        """
        state = self._state
        marks = self._watermarks
        if not state.log_start <= offset <= state.written_offset:
            raise OffsetOutOfRangeError(offset, state.log_start, state.written_offset)
        bound = marks.bound(isolation)
        found = None
        if offset < bound.offset:
            found = find_extent(
                state.segments,
                offset,
                bound,
                bytes_max=bytes_max,
                at_least_one_batch=at_least_one_batch,
                known=marks.find_place(offset),
            )
        aborted = ()
        if found is not None and isolation is Isolation.STABLE:
            aborted = self._aborted(found[0], offset, bound.offset)
        return Read(
            None if found is None else found[1],
            marks.high,
            marks.stable,
            state.log_start,
            state.written_offset,
            aborted,
        )
