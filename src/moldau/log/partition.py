"""The log of one partition."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from moldau._native.append import Place
from moldau._native.log import assign
from moldau._native.records import Batch
from moldau.kernel.clock import Instant
from moldau.kernel.disk import Buffer
from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.log.aborted_index import AbortedTransaction
from moldau.log.appender import Appended, Appender
from moldau.log.config import FSYNC, MEMORY, Durability, LogConfig
from moldau.log.dirty import Dirty, DirtyFiles
from moldau.log.errors import OffsetOutOfRangeError, UnexpectedOffsetError
from moldau.log.extents import (
    Extent,
    Isolation,
    Read,
    TimestampedOffset,
    collect_aborted,
    find_by_timestamp,
    find_extent,
    find_max_timestamp,
    segment_number_of,
)
from moldau.log.leader_epochs import EpochEnd
from moldau.log.producer_snapshots import encode_snapshot
from moldau.log.producers import Origin, Producers
from moldau.log.removal import Removal
from moldau.log.segment import Segment
from moldau.log.state import LogState, SegmentMaker
from moldau.log.succession import succeed
from moldau.log.truncation import Truncation
from moldau.log.validation import Checked, Writable, find_ordinary, validate_append
from moldau.log.watermarks import Watermarks

if TYPE_CHECKING:
    from moldau._native.fetch import ReadPlaces

_CLIENT: Final = Origin.CLIENT  # a member is slow to look up, and this is asked for every append


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
        "_truncation",
        "_watermarks",
        "end",
        "places",
    )

    def __init__(self, state: LogState, maker: SegmentMaker, durability: Durability) -> None:
        self.end = self._state = state
        """Its end, for the kernels: replicas append there what is ordinary, and fetches read."""
        self._maker = maker
        self._durability = durability
        state.ordinary = find_ordinary(maker.config)
        state.needs_sync = durability is FSYNC
        self._dirty = DirtyFiles(maker.directory)
        self._appender = Appender(state, maker, self._dirty)
        self._watermarks = Watermarks(state)
        self._removal = Removal(
            state,
            maker,
            self._appender,
            self._dirty,
            is_durable=durability is not MEMORY,
        )
        self._truncation = Truncation(
            state, maker, self._appender, self._dirty, self._removal, self._watermarks
        )
        self._flushed_at: float | None = None
        self.places: ReadPlaces | None = None
        """Where readers go on, for the fetch kernel; forgotten when files change."""

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
        self._state.ordinary = find_ordinary(config)
        self._state.is_noted = False
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
    def durable_offset(self) -> Offset:
        """The end of what is durable here: synced or only written, as `durability` asks."""
        return self._state.durable_offset

    @property
    def high_watermark(self) -> Offset:
        """The end of what consumers see."""
        return self._state.high_watermark

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
        segments = self._state.segments
        # Nearly all have one, and the metrics ask ten thousand of them.
        return segments[0].size if len(segments) == 1 else sum(each.size for each in segments)

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
        now_ms = now.wall_ms
        append_time = -1
        batches = None
        state = self._state
        if state.ordinary is not None:
            batches = state.ordinary.take(checked, origin is _CLIENT, now_ms)
        if batches is None:
            config = self._maker.config
            data, batches = validate_append(config, data, checked, origin=origin, now_ms=now_ms)
            if config.message_timestamp_type == "LogAppendTime":
                append_time = now_ms
        for batch in batches:
            if batch.producer_id >= 0:
                duplicate = state.producers.check_any(batch, data, origin, transaction_version)
                if duplicate is not None:
                    return Appended(*duplicate, state.log_start, is_duplicate=True)
        base_offset = state.end_offset
        end = assign(data, batches, base_offset, leader_epoch, append_time)
        self._appender.stage(data, batches, now_ms)
        return Appended(base_offset, Offset(end - 1), append_time, state.log_start)

    def append_assigned(self, data: Buffer, batches: list[Batch], *, now: Instant) -> None:
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
            self._appender.stage(data, batches, now.wall_ms)

    def write(self) -> bool:
        """Give everything that was staged to the disk, if anything; say whether there was.

        `StorageFullError` if there is no room: then none of it is in the log, and every
        append since the last write gets that error.
        """
        return self._appender.write()

    # Durability.

    def is_sync_due(self, now: Instant) -> bool:
        """Return whether what is dirty should be synced now."""
        if self._durability is MEMORY or not self._dirty:
            return False
        if self._durability is FSYNC or self._dirty.has_closed:
            return True
        config = self._maker.config
        if self._flushed_at is None:
            self._flushed_at = now.monotonic
        return (
            self._state.written_offset - self._state.synced >= config.flush_messages
            or (now.monotonic - self._flushed_at) * 1000 >= config.flush_ms
        )

    @property
    def is_syncing(self) -> bool:
        """Whether a sync round with a part of this log is under way."""
        return self._dirty.is_taken

    def take_dirty(self, now: Instant) -> Dirty:
        """Hand out what is to be synced; it gathers anew from here on."""
        self._flushed_at = now.monotonic
        self._state.is_noted = False
        return self._dirty.take(self._state.written_offset)

    def synced(self, dirty: Dirty) -> None:
        """Everything in `dirty` is on the device."""
        self._dirty.done(dirty)
        self._state.synced = max(self._state.synced, dirty.end_offset)

    def put_back(self, dirty: Dirty) -> None:
        """Have `dirty` synced later: the disk had no room for a checkpoint, and nothing failed."""
        self._dirty.put_back(dirty)

    def close(self) -> None:
        """Get ready for a clean shutdown: indexes complete, the producers in a snapshot.

        What is dirty then has to be synced before the clean-shutdown marker is written.
        """
        self.write()
        state = self._state
        active = state.active
        end = state.end_offset
        if active.has_files:
            active.complete_indexes()
            for path in active.paths[: 4 if active.has_aborted else 3]:
                self._dirty.add_file(path)
        if active.has_files and end not in state.snapshots:
            snapshot = encode_snapshot(state.producers.states.values())
            self._appender.write_snapshot(end, snapshot)

    # The watermark.

    def advance_high_watermark(self, offset: Offset) -> bool:
        """Let consumers see up to `offset`; say whether that is new."""
        return self._state.advance(offset)

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
        log_start, log_end = state.log_start, state.written_offset
        if not log_start <= offset <= log_end:
            raise OffsetOutOfRangeError(offset, log_start, log_end)
        bound = marks.bound(isolation)
        found = None
        if offset < bound.offset:
            found = find_extent(
                state.segments,
                offset,
                bound,
                bytes_max=bytes_max,
                at_least_one_batch=at_least_one_batch,
                known=state.find_place(offset),
            )
        aborted: Sequence[AbortedTransaction] = ()
        if found is not None and isolation is Isolation.STABLE:
            aborted = self._aborted(*found, offset, bound)
        return Read(
            None if found is None else found[1],
            state.high_watermark,
            marks.stable,
            log_start,
            log_end,
            aborted,
        )

    def _aborted(
        self, segment: Segment, extent: Extent, offset: Offset, bound: Place
    ) -> Sequence[AbortedTransaction]:
        """Return the aborted transactions of a read; some behind it do no harm."""
        segments = self._state.segments
        number = segment_number_of(segments, segment.base_offset)
        upper = bound.offset
        if extent.position + extent.length < segment.size and number < len(segments) - 1:
            upper = min(upper, segments[number + 1].base_offset)
        return collect_aborted(segments[number:], offset, upper)

    def find_by_timestamp(
        self, timestamp: int, isolation: Isolation = Isolation.HIGH_WATERMARK
    ) -> TimestampedOffset | None:
        """Return the first visible record that is not older than `timestamp`."""
        state = self._state
        found = find_by_timestamp(state.segments, timestamp, state.log_start)
        return self._visible(found, isolation)

    def find_max_timestamp(
        self, isolation: Isolation = Isolation.HIGH_WATERMARK
    ) -> TimestampedOffset | None:
        """Return the first record with the largest timestamp, if it is visible."""
        found = find_max_timestamp(self._state.segments, self._state.log_start)
        return self._visible(found, isolation)

    def _visible(
        self, found: TimestampedOffset | None, isolation: Isolation
    ) -> TimestampedOffset | None:
        end = self._watermarks.bound(isolation).offset
        return found if found is not None and found.offset < end else None

    # Leader epochs.

    @property
    def latest_epoch(self) -> LeaderEpoch | None:
        """The newest leader epoch in the log."""
        latest = self._state.epochs.latest
        return None if latest is None else latest.epoch

    def begin_epoch(self, epoch: LeaderEpoch) -> None:
        """This replica leads from here on: what others ask about the epoch, it can answer."""
        if self._state.epochs.assign(epoch, self._state.end_offset):
            self._appender.reload()
            self._appender.note_epochs()

    def end_offset_for(self, epoch: LeaderEpoch) -> EpochEnd:
        """Answer OffsetForLeaderEpoch."""
        return self._state.epochs.end_offset_for(epoch, self._state.written_offset)

    def find_epoch_of(self, offset: Offset) -> LeaderEpoch | None:
        """Return the epoch that wrote `offset`."""
        return self._state.epochs.find_epoch_of(offset)

    # Forgetting.

    def delete_records(self, before: Offset) -> Offset:
        """Answer DeleteRecords, -1 for all that consumers see; return the new log start."""
        high = self._state.high_watermark
        offset = high if before < 0 else before
        if offset > high:
            raise OffsetOutOfRangeError(offset, self._state.log_start, high)
        if offset > self._state.log_start:
            self._removal.advance_log_start(offset)
        return self._state.log_start

    def apply_retention(self, now: Instant, *, up_to: Offset) -> int:
        """Take expired segments out, as far as `up_to`; return how many. Nothing may be staged."""
        self._state.settle()
        assert self._appender.is_clean, "write before"
        return self._removal.apply_retention(min(up_to, self._state.high_watermark), now)

    def take_removable(self, now: Instant) -> list[str]:
        """Return the files to remove now, `file.delete.delay.ms` after they left the log."""
        return self._removal.take_removable(now)

    def expire_producers(self, now: Instant, expiration_ms: int) -> int:
        """Forget idle producers; return how many."""
        return self._state.producers.expire(now.wall_ms, expiration_ms)

    @property
    def closed_segments(self) -> Sequence[Segment]:
        """What compaction may rewrite."""
        return self._state.segments[:-1]

    def replace_segments(
        self, olds: Sequence[Offset], base_offset: Offset, retired: list[str], now: Instant
    ) -> None:
        """Compaction has put one segment in the place of several, and renamed their files."""
        segments = self._state.segments
        numbers = [n for n, segment in enumerate(segments) if segment.base_offset in olds]
        assert numbers == list(range(numbers[0], numbers[0] + len(olds))), f"{olds} are not closed"
        assert numbers[-1] < len(segments) - 1, "the active segment is not compacted"
        for number in numbers:
            self._dirty.remove_segment(segments[number])
            segments[number].forget()
        new = self._maker.open(base_offset, now.wall_ms)
        new.seen_ms = segments[numbers[0]].seen_ms
        segments[numbers[0] : numbers[-1] + 1] = [new]
        gone = set(olds) - {base_offset}  # their snapshots went with them
        self._state.snapshots[:] = [s for s in self._state.snapshots if s not in gone]
        self._dirty.add_segment(new)
        self.places = None
        self._state.forget_places()
        self._removal.add_retired(retired, now)

    def find_cut(self, offset: Offset) -> Offset:
        """Return what the checkpoints must not go beyond when the log is cut at `offset`."""
        return self._truncation.find_cut(offset)

    def truncate_to(self, offset: Offset, now: Instant) -> None:
        """Cut the log at `offset`, and at the beginning of the batch that holds it.

        What the recovery point's checkpoint says must not lie beyond the cut by then.
        """
        self.write()
        self.places = None
        self._truncation.truncate_to(offset, now)

    def truncate_fully_and_start_at(self, offset: Offset, now: Instant) -> None:
        """Forget everything; the log goes on at `offset`."""
        self.write()
        self.places = None
        self._truncation.start_over(offset, now)

    # Taking another's place.

    def succeed(self, before: "PartitionLog", now: Instant) -> None:
        """Become what a log with the same records was: know all that records do not tell.

        Nothing may be staged in either. `DiskFullError`: there is no room for the snapshot of the
        producers, and this may be tried again.
        """
        assert before.log_start >= self.log_start, "records are missing at the start"
        assert self._appender.is_clean, "write before"
        self.config = before.config
        succeed(self._state, before._state, self._appender, now)  # noqa: SLF001 - one of us
        if before.log_start > self.log_start:
            self._removal.advance_log_start(before.log_start)
        self._state.forget_places()
        self._state.advance(before.high_watermark)

    def hold(self, at: Offset) -> None:
        """Vouch for nothing more than what is below `at`, until `release`."""
        self._state.held_at = at

    def release(self) -> None:
        """Vouch for what is durable again."""
        self._state.held_at = Offset(-1)

    def relocate(self, folder: str) -> None:
        """The folder was renamed, while nothing in it was being synced and nothing staged."""
        assert self._appender.is_clean, "write before"
        self._maker.directory = folder
        self._dirty.relocate(folder)
        self._removal.relocate(folder)
        for segment in self._state.segments:
            segment.relocate(folder)
