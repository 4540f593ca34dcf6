"""One segment of a partition: a range of its batches in a file, with its indexes."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, TypeVar

from moldau._native.append import SegmentBase
from moldau._native.log import Tail, find_batch
from moldau._native.records import Batch
from moldau._native.segment_scan import SegmentScan, read_header
from moldau.kernel.disk import Buffer, Disk, DiskFullError, DiskMissingError
from moldau.kernel.errors import CorruptBatchError
from moldau.kernel.ids import Offset, Position
from moldau.log.aborted_index import AbortedIndex
from moldau.log.config import FOREVER
from moldau.log.errors import CorruptIndexError, CorruptLogError
from moldau.log.file_names import (
    ABORTED_INDEX,
    DELETED,
    LOG,
    OFFSET_INDEX,
    SEGMENT_SUFFIXES,
    TIME_INDEX,
    relocated,
    segment_path,
)
from moldau.log.index_pages import PageCache
from moldau.log.markers import BATCH_HEADER_BYTES
from moldau.log.offset_index import OffsetIndex, OffsetPosition
from moldau.log.segment_scan import scan_segment
from moldau.log.time_index import TimeIndex, TimestampOffset

T = TypeVar("T")

WINDOW_BYTES: Final = 4096 + BATCH_HEADER_BYTES
SPAN_BYTES_MAX: Final = 32 << 10
"""Up to here, reading all from one index entry to the next is cheaper than reading twice."""


class FoundBatch(NamedTuple):
    """Where a batch is in its segment."""

    position: Position
    size: int
    last_offset: Offset


class Segment(SegmentBase):
    """The batches from `base_offset` to the next segment's; the one that is written has a tail.

    Opening one costs nothing: files appear with the first write, and indexes are read when they
    are needed.
    """

    __slots__ = (
        "_aborted",
        "_cache",
        "_largest",
        "_offsets",
        "_times",
        "directory",
        "is_durable",
        "seen_ms",
    )

    def __init__(
        self, disk: Disk, directory: str, base_offset: Offset, cache: PageCache, *, seen_ms: int
    ) -> None:
        super().__init__(disk, segment_path(directory, base_offset, LOG), base_offset)
        self.directory = directory
        self.seen_ms = seen_ms  # when it was made or, after a start, opened
        self.is_durable = False  # its name is on the device
        self._cache = cache
        self._offsets: OffsetIndex | None = None
        self._times: TimeIndex | None = None
        self._aborted: AbortedIndex | None = None
        self._largest: TimestampOffset | None = None  # of a closed segment, once it is known

    @property
    def paths(self) -> list[str]:
        """All files that it may have, the batches first."""
        return [segment_path(self.directory, self.base_offset, s) for s in SEGMENT_SUFFIXES]

    @property
    def offsets(self) -> OffsetIndex:
        """The offset index."""
        index = self._offsets
        if index is None:
            path = segment_path(self.directory, self.base_offset, OFFSET_INDEX)
            index = OffsetIndex(self.disk, path, self.base_offset, self._cache)
            self._offsets = index
        return index

    @property
    def times(self) -> TimeIndex:
        """The time index."""
        index = self._times
        if index is None:
            path = segment_path(self.directory, self.base_offset, TIME_INDEX)
            index = self._times = TimeIndex(self.disk, path, self.base_offset, self._cache)
        return index

    @property
    def aborted(self) -> AbortedIndex:
        """The index of aborted transactions."""
        index = self._aborted
        if index is None:
            path = segment_path(self.directory, self.base_offset, ABORTED_INDEX)
            index = self._aborted = AbortedIndex(self.disk, path, self.base_offset)
        return index

    # Writing.

    def create(self) -> None:
        """Make the files, empty."""
        self.disk.append(self.path, ())
        self.offsets.reset()
        self.times.reset()
        self.has_files = True

    def write(self, pieces: Sequence[Buffer]) -> None:
        """Write what was staged, with one call of the disk; `note_written` or `undo` follows."""
        if not self.has_files:
            self.create()
        # Before the records: a reader of the marker has to know what it aborted.
        if self._aborted is not None:
            self._aborted.write()
        self.disk.append(self.path, pieces)

    def undo(self) -> None:
        """Be as after the last `note_written`, whatever a failed write has left in the files."""
        tail = self.tail
        assert tail is not None, f"{self.path} is closed"
        tail.rewind()
        if self._aborted is not None:
            self._aborted.undo(tail.end_offset)
        if self.has_files and self.disk.size(self.path) > self.size:
            self.disk.truncate(self.path, self.size)

    def absorb_entries(self) -> None:
        """Take the index entries of what was written into the indexes."""
        tail = self.tail
        if tail is None or not tail.entry_count:
            return
        entries = tail.take_entries()
        if entries is not None:
            self.offsets.extend(entries.offsets, entries.positions)
            self.times.extend(entries.timestamps, entries.timestamp_offsets)

    def write_entries(self) -> None:
        """Write all index entries that there are.

        On a full disk they are dropped instead: an index with holes is slower, and still right.
        """
        self.absorb_entries()
        for index in (self._offsets, self._times):
            if index is not None:
                try:
                    index.write()
                except DiskFullError:
                    index.discard()

    @property
    def has_aborted(self) -> bool:
        """Whether a transaction that ended here was aborted."""
        return self._aborted is not None and self._aborted.count > 0

    def drop_indexes(self) -> None:
        """Be without indexes of offsets and times, for want of room: they are built when needed."""
        for path in self.paths[1:3]:
            with suppress(DiskMissingError):
                self.disk.remove(path)
        self._forget_indexes()

    def seal(self) -> None:
        """Close the segment: nothing more is written to it."""
        self.complete_indexes()
        self.tail = None

    def complete_indexes(self) -> None:
        """Write the indexes with the largest timestamp; nothing of them stays in memory."""
        tail = self.tail
        assert tail is not None, f"{self.path} is closed"
        if self.has_files:
            self.absorb_entries()
            if tail.max_timestamp >= 0:
                self.times.add(tail.max_timestamp, tail.max_timestamp_offset)
            self.offsets.seal()
            self.times.seal()

    def open_tail(self) -> str | None:
        """Make it the segment that is written, reading headers from the last index entry on.

        Returns what is wrong with the first batch that is not whole, None if all are.
        """
        position = self.offsets.last().position
        largest = self.times.last()
        tail = Tail(
            self.base_offset,
            created_ms=self.seen_ms,
            position=position,
            entry_timestamp=largest.timestamp,
            offset_entries=self.offsets.count,
            time_entries=self.times.count,
            **(self._times_before(largest) if position else {}),
        )
        failure = self._scan_headers(tail)
        known = tail.max_timestamp, tail.max_timestamp_offset
        if failure is None and not position and largest.timestamp >= 0 and largest != known:
            # All headers were read, and as a rule they show the entry to be true: not this time.
            self._check_time(largest)
        self.tail = tail
        self.absorb_entries()
        self.offsets.prepare()
        self.times.prepare()
        return failure

    def rebuild_indexes(self) -> Tail:
        """Make the indexes of offsets and times anew from the batches' headers."""
        tail = Tail(self.base_offset, created_ms=self.seen_ms)
        failure = self._scan_headers(tail)
        if failure is not None:
            raise CorruptLogError(self.path, tail.position, failure)
        try:
            self.take_indexes(tail)
        except DiskFullError:
            self.drop_indexes()
        if self.tail is not None and self.tail.entry_count:
            self.tail.take_entries()
        return tail

    def take_indexes(self, tail: Tail) -> None:
        """Begin the indexes anew with what a scan of the whole segment has found."""
        self.offsets.reset()
        self.times.reset()
        self.has_files = True
        entries = tail.take_entries()
        if entries is not None:
            self.offsets.extend(entries.offsets, entries.positions)
            self.times.extend(entries.timestamps, entries.timestamp_offsets)
        if tail.max_timestamp >= 0 and self.tail is None:
            self.times.add(tail.max_timestamp, tail.max_timestamp_offset)
        self.offsets.seal()
        self.times.seal()

    def _scan_headers(self, tail: Tail) -> str | None:
        scan = SegmentScan(tail, size=self.size, check_from=FOREVER)
        for _ in scan_segment(self.disk, self.path, scan, self.size):
            pass
        return scan.failure

    def _times_before(self, largest: TimestampOffset) -> dict[str, int]:
        """Return what the headers before the last index entry would tell a tail."""
        if largest.timestamp >= 0:
            self._check_time(largest)
        return {
            "first_timestamp": self._first_timestamp(),
            "max_timestamp": largest.timestamp,
            "max_timestamp_offset": largest.offset if largest.timestamp >= 0 else -1,
        }

    def _first_timestamp(self) -> int:
        return self.header_at(Position(0)).max_timestamp if self.size else -1

    # Reading.

    def find(self, offset: Offset) -> FoundBatch | None:
        """Return the first batch that ends at `offset` or later; mends an index that misleads."""
        if not self.size:
            return None
        self.absorb_entries()
        try:
            return self._find(offset)
        except (CorruptIndexError, CorruptBatchError, DiskMissingError):
            start = OffsetPosition(self.base_offset, Position(0))
            return self._ask_indexes(
                lambda: self._find(offset), lambda: self._find_from(start, offset)
            )

    def _ask_indexes(self, ask: Callable[[], T], do_without: Callable[[], T]) -> T:
        """Ask the indexes; build them anew if they are not there or not true, if there is room."""
        for _ in range(2):
            try:
                return ask()
            except (CorruptIndexError, CorruptBatchError):
                pass
            except DiskMissingError as error:
                if error.path == self.path:
                    raise
            self.rebuild_indexes()
        return do_without()

    def _find(self, offset: Offset) -> FoundBatch | None:
        entry, span = self.offsets.lookup_span(offset)
        is_handy = 0 < span <= SPAN_BYTES_MAX
        return self._find_from(entry, offset, span + BATCH_HEADER_BYTES if is_handy else 0)

    def _find_from(
        self, entry: OffsetPosition, offset: Offset, window_bytes: int = 0
    ) -> FoundBatch | None:
        window_bytes = max(window_bytes, WINDOW_BYTES)
        position: int = entry.position
        size = self.size
        if position >= size:
            raise CorruptIndexError(self.offsets.path, f"{entry} lies beyond the segment's end")
        while position < size:
            window = self.disk.read(self.path, position, min(window_bytes, size - position))
            # Not at the start: compaction may have removed the batches that began there.
            if position == entry.position > 0 and int.from_bytes(window[:8]) > entry.offset:
                raise CorruptIndexError(self.offsets.path, f"{entry} points to a later batch")
            step, batch_size, last_offset = find_batch(window, offset)
            if batch_size:
                return FoundBatch(Position(position + step), batch_size, Offset(last_offset))
            if not step:
                raise CorruptBatchError(f"batch at {position}: cut off after {len(window)} bytes")
            position += step
        return None

    def header_at(self, position: Position) -> Batch:
        """Return the header of the batch at `position`."""
        return read_header(
            self.disk.read(self.path, position, BATCH_HEADER_BYTES), position=position
        )

    def read_batch(self, found: Batch | FoundBatch) -> bytes:
        """Return a whole batch."""
        return self.disk.read(self.path, found.position, found.size)

    def find_time(self, timestamp: int) -> Offset:
        """Return an offset before which all records are older than `timestamp`."""
        self.absorb_entries()
        return self._ask_indexes(
            lambda: self._check_time(self.times.lookup(timestamp)).offset, lambda: self.base_offset
        )

    def largest_timestamp(self) -> TimestampOffset:
        """Return the largest timestamp and the last offset of the batch that has it first."""
        tail = self.tail
        if tail is not None:
            return TimestampOffset(tail.max_timestamp, tail.max_timestamp_offset)
        if not self.size:
            return TimestampOffset(-1, self.base_offset)
        if self._largest is None:
            self._largest = self._ask_indexes(self._last_time, self._scan_timestamps)
        return self._largest

    def _last_time(self) -> TimestampOffset:
        entry = self.times.last()
        if entry.timestamp < 0 <= self._first_timestamp():
            raise CorruptIndexError(self.times.path, "it is empty")
        return self._check_time(entry)

    def _check_time(self, entry: TimestampOffset) -> TimestampOffset:
        """Compare an entry with its batch: retention must not delete because of a flipped bit."""
        found = self._find(entry.offset)
        if found is not None:
            batch = self.header_at(found.position)
            if entry.timestamp in (-1, batch.max_timestamp):
                return entry
        raise CorruptIndexError(self.times.path, f"{entry} is not true")

    def _scan_timestamps(self) -> TimestampOffset:
        tail = Tail(self.base_offset, created_ms=self.seen_ms)
        self._scan_headers(tail)
        return TimestampOffset(tail.max_timestamp, tail.max_timestamp_offset)

    # Leaving.

    def truncate_to(self, offset: Offset) -> None:
        """Remove the batch that holds `offset` and all behind it; the segment is written again."""
        found = self.find(offset)
        if found is not None:
            self.write_entries()
            self.disk.truncate(self.path, found.position)
            self.size = found.position
            self._largest = None
            self.offsets.truncate_to(offset)
            self.times.truncate_to(offset)
            self.aborted.truncate_to(offset)
        self.tail = None

    def retire(self) -> list[str]:
        """Rename the files to what is removed later; return their new names."""
        retired = []
        for path in self.paths if self.has_files else ():
            try:
                self.disk.rename(path, path + DELETED)
            except DiskMissingError:
                continue
            retired.append(path + DELETED)
        self.forget()
        return retired

    def move_to(self, disk: Disk, cache: PageCache) -> None:
        """Use another view of the same files, and another cache, from here on.

        What is needed to append stays loaded: appending on the event loop must read nothing.
        """
        self.write_entries()
        if self.tail is None:
            self.forget()
        else:
            self.offsets.move_to(disk, cache)
            self.times.move_to(disk, cache)
            if self._aborted is not None:
                self._aborted.move_to(disk)
        self.disk = disk
        self._cache = cache

    def relocate(self, folder: str) -> None:
        """The partition's folder has another name: so have the files."""
        self.directory = folder
        self.path = relocated(self.path, folder)
        for index in (self._offsets, self._times, self._aborted):
            if index is not None:
                index.path = relocated(index.path, folder)

    def forget(self) -> None:
        """Give back all memory that the indexes use."""
        self._forget_indexes()
        self._aborted = None

    def _forget_indexes(self) -> None:
        for index in (self._offsets, self._times):
            if index is not None:
                index.forget()
        self._offsets = self._times = None
        self._largest = None
