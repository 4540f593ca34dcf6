"""Opening the directory of a partition, whatever state it was left in.

After a clean shutdown no records are read: what the indexes and the last snapshot say holds. Else
everything beyond the recovery point is checked, and what follows from it is made anew. There the
first bad batch ends the log, because a torn write looks like that; what it cuts off is set aside.
Below the recovery point a bad batch is rot, and the partition stays closed.
"""

from collections.abc import Generator
from contextlib import suppress
from itertools import pairwise
from typing import Final

from moldau._native.log import Tail
from moldau._native.segment_scan import SegmentScan, find_whole_batch
from moldau.kernel.disk import DiskMissingError
from moldau.kernel.errors import CorruptBatchError
from moldau.kernel.ids import LeaderEpoch, Offset, Position
from moldau.log.aborted_index import AbortedTransaction
from moldau.log.config import FOREVER
from moldau.log.errors import (
    CorruptIndexError,
    CorruptLogError,
    CorruptSnapshotError,
    MalformedFileError,
)
from moldau.log.extents import segment_number_of
from moldau.log.file_names import (
    ABORTED_INDEX,
    CUT,
    OFFSET_INDEX,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    TIME_INDEX,
    segment_path,
)
from moldau.log.inventory import take_inventory
from moldau.log.leader_epochs import LEADER_EPOCH_CHECKPOINT, LeaderEpochs
from moldau.log.producer_recovery import find_snapshot, load_producers, replay
from moldau.log.producer_snapshots import decode_snapshot, encode_snapshot
from moldau.log.producers import Producers
from moldau.log.segment import FoundBatch, Segment
from moldau.log.segment_scan import read_whole, scan_segment
from moldau.log.state import LogState, Notice, SegmentMaker

COPY_BYTES: Final = 1 << 20
AT_START: Final = Offset(0)

RecoverySlices = Generator[int, None, None]


def recover_log(
    maker: SegmentMaker,
    *,
    is_clean: bool,
    recovery_point: Offset,
    log_start: Offset,
    now_ms: int,
    compacted_to: Offset = AT_START,
) -> Generator[int, None, LogState]:
    """Open a partition in slices: yields the bytes that each has read, returns the log's state.

    Waits for the device, so it runs beside the event loop, on a disk that waits; the segments move
    to the loop's afterwards (`Segment.move_to`). `CorruptLogError`: synced records are damaged.
    """
    opening = _Opening(maker, recovery_point, log_start, now_ms, compacted_to)
    yield from opening.run(is_clean=is_clean)
    return opening.state


class _Opening:
    """One partition on its way to being open."""

    def __init__(
        self,
        maker: SegmentMaker,
        recovery_point: Offset,
        log_start: Offset,
        now_ms: int,
        compacted_to: Offset,
    ) -> None:
        self._maker = maker
        self._disk = maker.disk
        self._directory = maker.directory
        self._recovery_point = recovery_point
        self._log_start = log_start
        self._now_ms = now_ms
        self._compacted_to = compacted_to
        self._changed: list[Segment] = []
        self._inventory = take_inventory(self._disk, self._directory)
        self.notices: list[Notice] = self._inventory.notices
        self.state = LogState([], log_start, log_start)

    def run(self, *, is_clean: bool) -> RecoverySlices:
        """Do everything."""
        segments = [self._maker.open(b, self._now_ms) for b in sorted(self._inventory.segments)]
        segments = self._drop_empty(segments)
        state = self.state
        state.segments = segments or [self._maker.make(self._log_start, self._now_ms)]
        if not segments:
            self._check_end(self._log_start)
            state.notices = self.notices
            return
        state.snapshots = list(self._inventory.snapshots)
        epochs = self._load_epochs()
        state.epochs = epochs or LeaderEpochs()
        if is_clean and epochs is not None and self._open_clean():
            yield from self._mend_indexes()
        else:
            # Without the epochs, all headers have to be read.
            unsynced = segment_number_of(segments, self._recovery_point)
            yield from self._check(0 if epochs is None else max(0, unsynced))
        self._finish()

    def _drop_empty(self, segments: list[Segment]) -> list[Segment]:
        """Drop segments that are empty, unless records of theirs got lost.

        The last is written, and the first tells where the log starts, when compaction has left
        nothing in it.
        """
        kept = []
        for segment, following in pairwise(segments):
            is_first = segment is segments[0]
            if is_first or segment.size or self._is_lost(segment.base_offset, following):
                kept.append(segment)
                continue
            # The later one must not get lost together with this.
            self._disk.sync_directory(self._directory)
            for path in segment.paths:
                with suppress(DiskMissingError):
                    self._disk.remove(path)
        return kept + segments[-1:]

    # A clean start.

    def _open_clean(self) -> bool:
        """Open the last segment by its indexes; False if they or its end are not as they should."""
        active = self.state.segments[-1]
        try:
            failure = active.open_tail()
        except (CorruptIndexError, DiskMissingError):
            active.rebuild_indexes()
            failure = active.open_tail()
        if failure is not None:
            text = f"was closed in good order, but {failure}; checking the log"
            self.notices.append(Notice(active.path, text, is_alarming=True))
            active.tail = None
            return False
        self._maker.limit(active)
        if ABORTED_INDEX in self._inventory.segments[active.base_offset]:
            try:
                active.aborted.prepare()
            except CorruptIndexError as error:
                self.notices.append(Notice(error.path, f"{error}; checking the log"))
                active.tail = None
                return False
        state = self.state
        end = state.end_offset
        state.producers = load_producers(self._disk, state.segments, state.snapshots, end)
        return True

    def _mend_indexes(self) -> RecoverySlices:
        for segment in self.state.segments[:-1]:
            missing = {OFFSET_INDEX, TIME_INDEX} - self._inventory.segments[segment.base_offset]
            if missing:
                self.notices.append(Notice(segment.path, "has no index; it is built anew"))
                segment.rebuild_indexes()
                self._changed.append(segment)
                yield segment.size

    # An unclean start.

    def _check(self, number: int) -> RecoverySlices:
        """Check the segments from `number` on, and make anew what follows from them."""
        state = self.state
        segments = state.segments
        # The one where the log begins stays: what it knows, no record tells any more.
        trusted = max(self._recovery_point, segments[0].base_offset)
        for offset in [s for s in state.snapshots if s >= self._recovery_point]:
            if offset > trusted or not self._is_whole(offset):
                self._remove_snapshot(offset)
            else:
                self._disk.sync(segment_path(self._directory, offset, SNAPSHOT))
        if number and segments[number].base_offset == self._recovery_point:
            number -= 1  # it was closed after the last sync: its indexes may not be whole
            yield from self._check_end_of(segments[number])
        bases = {segment.base_offset for segment in segments[: number + 1]}
        start, state.producers = find_snapshot(
            self._disk,
            self._directory,
            [snapshot for snapshot in state.snapshots if snapshot in bases],
            segments[number].base_offset,
        )
        # Without a snapshot of just there, older segments tell what the producers did.
        number = min(number, max(0, segment_number_of(segments, start)))
        state.epochs.truncate_from_end(segments[number].base_offset)
        while number < len(segments):
            segment = segments[number]
            following = segments[number + 1] if number + 1 < len(segments) else None
            failure = yield from self._check_segment(segment, following, start)
            if failure is not None:
                yield from self._cut(number, failure)
            number += 1
            if number < len(segments):
                self._take_snapshot(segments[number].base_offset)
        for segment in segments[:-1]:
            segment.tail = None
        state.producers.mark()
        self._check_end(state.end_offset)

    def _check_segment(
        self, segment: Segment, following: Segment | None, start_offset: Offset
    ) -> Generator[int, None, str | None]:
        """Scan one segment; return what is wrong with its first bad batch, or behind its last."""
        state = self.state
        tail = Tail(segment.base_offset, created_ms=self._now_ms)
        self._maker.limit_tail(tail)
        latest = state.epochs.latest
        scan = SegmentScan(
            tail,
            size=segment.size,
            check_from=self._recovery_point,
            latest_epoch=-1 if latest is None else latest.epoch,
        )
        segment.aborted.reset()
        for size, batches in scan_segment(self._disk, segment.path, scan, segment.size):
            aborted = replay(state.producers, self._disk, segment, batches, start_offset)
            for transaction in aborted:
                segment.aborted.add(AbortedTransaction(*transaction[:4]))
            yield size
        segment.aborted.write()
        for epoch, offset in scan.epochs:
            state.epochs.assign(LeaderEpoch(epoch), Offset(offset))
        failure: str | None = scan.failure
        if failure is None and following is not None:
            failure = self._check_next(Offset(tail.end_offset), following)
        is_last = following is None or failure is not None
        segment.tail = tail if is_last else None
        segment.take_indexes(tail)
        segment.tail = tail
        self._changed.append(segment)
        return failure

    def _check_next(self, end: Offset, following: Segment) -> str | None:
        """Compare where the next segment begins; return what is wrong."""
        if following.base_offset < end:
            failure = f"the next segment begins below its end, at offset {following.base_offset}"
            if following.base_offset < self._recovery_point:
                raise CorruptLogError(following.path, 0, failure)
            # The log was cut there and went on, and the crash has undone the cut.
            return failure
        if self._is_lost(end, following):
            return f"offsets {end} to {following.base_offset - 1} are missing"
        return None

    def _is_lost(self, end: Offset, following: Segment) -> bool:
        """Whether there were unsynced records between a segment's end and the next one's start.

        Compaction leaves holes, too, but below what was synced or compacted.
        """
        return following.base_offset > max(end, self._recovery_point, self._compacted_to)

    def _take_snapshot(self, offset: Offset) -> None:
        """Write the snapshot that belongs to where a segment begins."""
        if offset not in self.state.snapshots:
            snapshot = encode_snapshot(self.state.producers.states.values())
            self._disk.replace(segment_path(self._directory, offset, SNAPSHOT), snapshot)
            self.state.snapshots.append(offset)

    def _is_whole(self, snapshot: Offset) -> bool:
        path = segment_path(self._directory, snapshot, SNAPSHOT)
        try:
            decode_snapshot(path, read_whole(self._disk, path))
        except CorruptSnapshotError:
            return False
        return True

    def _check_end(self, end_offset: Offset) -> None:
        if end_offset < self._recovery_point:
            path = self.state.segments[-1].path
            raise CorruptLogError(
                path,
                self.state.segments[-1].size,
                f"the log ends at offset {end_offset}, but it was synced up to "
                f"{self._recovery_point}",
            )

    def _check_end_of(self, segment: Segment) -> RecoverySlices:
        """Cut what lies behind the recovery point off a segment that ends there.

        If the log was cut there before it went on in another segment, the crash may have undone it.
        """
        try:
            found = segment.find(Offset(self._recovery_point - 1))
        except CorruptLogError:
            # Its index is damaged as well, and cannot be built with that behind it.
            found = self._find_last(segment)
            if found is None:
                raise
        end = segment.size
        if found is not None:
            end = found.position + (found.size if found.last_offset < self._recovery_point else 0)
        if end < segment.size:
            kept = f"{segment.path}.{end}{CUT}"
            yield from self._set_aside(segment, end, kept)
            text = f"{segment.size - end} bytes were brought back by the crash; set aside in {kept}"
            self.notices.append(Notice(segment.path, text))
            self._disk.truncate(segment.path, end)
            segment.size = end
            segment.rebuild_indexes()
            self._changed.append(segment)

    def _find_last(self, segment: Segment) -> FoundBatch | None:
        """Return the batch that ends at the recovery point, without an index."""
        position = Position(0)
        with suppress(CorruptBatchError):
            while position < segment.size:
                batch = segment.header_at(position)
                if batch.last_offset >= self._recovery_point - 1:
                    return FoundBatch(position, batch.size, Offset(batch.last_offset))
                position = Position(position + batch.size)
        return None

    # Cutting.

    def _cut(self, number: int, failure: str) -> RecoverySlices:
        """End the log at the first bad batch of a segment; keep what is behind in other files."""
        segments = self.state.segments
        segment = segments[number]
        position, end = self._tail_of(segment)
        if end < self._recovery_point:
            raise CorruptLogError(
                segment.path, position, f"{failure}, below the synced offset {self._recovery_point}"
            )
        later = segments[number + 1 :]
        is_rot = yield from self._find_behind(segment, position, end)
        is_rot = is_rot or any(other.size for other in later)
        kept = f"{segment.path}.{position}{CUT}"
        if position < segment.size:
            yield from self._set_aside(segment, position, kept)
        for other in later:
            self._disk.rename(other.path, other.path + CUT)
            for path in other.paths[1:]:
                with suppress(DiskMissingError):
                    self._disk.remove(path)
        del segments[number + 1 :]
        text = f"{failure} at byte {position}: the log ends there, at offset {end}"
        if position < segment.size:
            text += f"; {segment.size - position} bytes are kept in {kept}"
        if later:
            text += f"; {len(later)} segments are kept with the suffix {CUT}"
        if is_rot:
            text += "; WHOLE BATCHES FOLLOW the bad one: this is damage, unless the power was lost"
        self.notices.append(Notice(segment.path, text, is_alarming=is_rot))
        self._disk.truncate(segment.path, position)
        segment.size = position

    def _tail_of(self, segment: Segment) -> tuple[int, int]:
        assert segment.tail is not None, "it was scanned"
        return segment.tail.position, segment.tail.end_offset

    def _find_behind(
        self, segment: Segment, position: int, end_offset: int
    ) -> Generator[int, None, bool]:
        """Look for a whole batch behind the bad one."""
        position += 1
        while position < segment.size:
            # Twice the step, so that a batch across two windows is whole in one of them.
            window = self._disk.read(segment.path, position, 2 * COPY_BYTES)
            yield len(window)
            if find_whole_batch(window, end_offset) >= 0:
                return True
            position += COPY_BYTES
        return False

    def _set_aside(self, segment: Segment, position: int, path: str) -> RecoverySlices:
        with suppress(DiskMissingError):
            self._disk.remove(path)
        while position < segment.size:
            piece = self._disk.read(segment.path, position, COPY_BYTES)
            self._disk.append(path, [piece])
            position += len(piece)
            yield len(piece)
        self._disk.sync(path)
        self._disk.sync_directory(self._directory)

    # Both.

    def _load_epochs(self) -> LeaderEpochs | None:
        """Read the checkpoint; None if it is missing or damaged, and there is data to ask."""
        path = f"{self._directory}/{LEADER_EPOCH_CHECKPOINT}"
        if not self._inventory.has_epochs:
            return None
        try:
            epochs = LeaderEpochs.parse(path, read_whole(self._disk, path))
        except MalformedFileError as error:
            self.notices.append(Notice(path, f"{error.reason}; it is made anew from the log"))
            return None
        if self._lacks_epochs(epochs):
            self.notices.append(
                Notice(path, "lacks the oldest epoch; it is made anew from the log")
            )
            return None
        return epochs

    def _lacks_epochs(self, epochs: LeaderEpochs) -> bool:
        """Whether records lie before the first epoch, as after the loss of a moved log start."""
        first = self.state.segments[0]
        known_from: int = epochs.starts[0].start_offset if epochs.starts else FOREVER
        if not first.size or known_from <= max(self._log_start, first.base_offset):
            return False
        try:
            header = first.header_at(Position(0))
        except CorruptBatchError:
            return False  # the check comes to that
        return header.leader_epoch >= 0 and known_from > max(self._log_start, header.base_offset)

    def _finish(self) -> None:
        state = self.state
        end = state.end_offset
        segments = state.segments
        if self._log_start > end:
            self._start_over(end)
        state.log_start = max(self._log_start, segments[0].base_offset)
        are_epochs_new = not self._inventory.has_epochs
        are_epochs_new |= state.epochs.truncate_from_end(state.end_offset)
        are_epochs_new |= state.epochs.truncate_from_start(state.log_start)
        self._remove_stray_snapshots()
        if self._changed:
            for segment in self._changed:
                self._sync_files(segment)
            self._disk.sync_directory(self._directory)
        if self._changed or are_epochs_new:
            path = f"{self._directory}/{LEADER_EPOCH_CHECKPOINT}"
            self._disk.replace(path, state.epochs.render())
        for segment in segments:
            segment.is_durable = True
        state.synced = state.end_offset
        state.notices = self.notices

    def _start_over(self, end: Offset) -> None:
        """All records lie below the log start: begin there."""
        state = self.state
        for segment in state.segments:
            self._disk.rename(segment.path, segment.path + CUT)
            for path in segment.paths[1:]:
                with suppress(DiskMissingError):
                    self._disk.remove(path)
        text = f"ends at {end}, but the log starts at {self._log_start}; set aside as *{CUT}"
        self.notices.append(Notice(self._directory, text, is_alarming=True))
        segment = self._maker.make(self._log_start, self._now_ms)
        segment.create()
        state.segments[:] = [segment]
        state.producers = Producers()
        self._changed = [segment]

    def _sync_files(self, segment: Segment) -> None:
        segment.write_entries()
        for suffix in SEGMENT_SUFFIXES:
            with suppress(DiskMissingError):
                self._disk.sync(segment_path(self._directory, segment.base_offset, suffix))

    def _remove_stray_snapshots(self) -> None:
        """Keep the snapshots where segments begin, and the newest; a shutdown leaves others."""
        state = self.state
        bases = {segment.base_offset for segment in state.segments}
        newest = max(state.snapshots, default=None)
        for offset in [s for s in state.snapshots if s not in bases and s != newest]:
            self._remove_snapshot(offset)

    def _remove_snapshot(self, offset: Offset) -> None:
        self.state.snapshots.remove(offset)
        with suppress(DiskMissingError):
            self._disk.remove(segment_path(self._directory, offset, SNAPSHOT))
