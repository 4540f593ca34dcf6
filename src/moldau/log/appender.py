"""Putting batches at the end of a log: staged one by one, written once per wake-up.

Staging never touches the disk. `write` gives everything to it, or else takes everything back.
"""

from bisect import insort
from contextlib import suppress
from typing import NamedTuple

from moldau._native.records import Batch
from moldau.kernel.disk import Buffer, DiskFullError, DiskMissingError
from moldau.kernel.ids import LeaderEpoch, Offset, Position
from moldau.log.aborted_index import AbortedTransaction
from moldau.log.dirty import DirtyFiles
from moldau.log.errors import StorageFullError
from moldau.log.file_names import SNAPSHOT, segment_path
from moldau.log.leader_epochs import LEADER_EPOCH_CHECKPOINT, EpochStart, LeaderEpochs
from moldau.log.markers import find_marker
from moldau.log.producer_snapshots import encode_snapshot
from moldau.log.segment import Segment
from moldau.log.sparse_index import RELATIVE_OFFSET_MAX
from moldau.log.state import LogState, SegmentMaker


class Appended(NamedTuple):
    """Where a batch is or, if it had been sent before, was."""

    base_offset: Offset
    last_offset: Offset
    append_time_ms: int  # -1 unless the topic has log append time
    log_start: Offset
    is_duplicate: bool = False


class _Filled(NamedTuple):
    """A segment that is full, with what is still to be written to it."""

    segment: Segment
    pieces: list[Buffer]
    end_offset: Offset
    snapshot: bytes


class Appender:
    """Stages and writes batches whose offsets are assigned."""

    __slots__ = (
        "_dirty",
        "_epochs_before",
        "_filled",
        "_maker",
        "_state",
        "_unstaged",
    )

    def __init__(self, state: LogState, maker: SegmentMaker, dirty: DirtyFiles) -> None:
        self._state = state
        self._maker = maker
        self._dirty = state.dirty = dirty
        state.take_back = self._take_back
        self._filled: list[_Filled] = []
        self._unstaged: list[Segment] = []  # empty segments that others took the place of
        self._epochs_before: list[EpochStart] | None = None  # before the first change since a write
        self.reload()

    def reload(self) -> None:
        """Take over a state that was changed outside of here, with nothing staged."""
        assert self.is_clean, "what is staged has to be written before"
        latest = self._state.epochs.latest
        self._state.epoch = LeaderEpoch(-1) if latest is None else latest.epoch

    @property
    def is_clean(self) -> bool:
        """Whether everything that was staged is written."""
        return not self._state.pieces and self._state.handed_write is None

    # Staging.

    def stage(self, data: Buffer, batches: list[Batch], now_ms: int) -> None:
        """Take in batches that follow each other in `data`, which must not change until `write`."""
        number = 0
        state = self._state
        state.settle()
        while True:
            segment = state.segments[-1]
            tail = segment.tail
            assert tail is not None, f"{segment.path} is closed"
            start = tail.position
            stop = tail.stage(batches, number, now_ms)
            size = tail.position - start
            first = batches[number].position
            if size == len(data):
                state.pieces.append(data)
            elif size:
                state.pieces.append(memoryview(data)[first : first + size])
            for batch in batches if stop - number == len(batches) else batches[number:stop]:
                if batch.leader_epoch != state.epoch:
                    self._begin_epoch(batch)
                if batch.producer_id >= 0:
                    position = Position(start + batch.position - first)
                    self._note_producer(segment, data, batch, position)
            if stop == len(batches):
                return
            self.stage_roll(self._next_base(batches[stop]), now_ms)
            number = stop

    def _next_base(self, batch: Batch) -> Offset:
        """Return where a new segment begins: right behind the last, whatever a leader's compaction
        has left out, so that recovery can tell whether something got lost between them.
        """
        end = self._state.end_offset
        is_far = batch.last_offset - end > RELATIVE_OFFSET_MAX
        return Offset(batch.base_offset) if is_far else end

    def stage_roll(self, base_offset: Offset, now_ms: int) -> Segment:
        """Let a new segment follow; the full one is closed when it is written."""
        state, segments = self._state, self._state.segments
        active = segments[-1]
        state.is_plain = False
        if state.tail.position or active.has_files:
            snapshot = encode_snapshot(state.producers.states.values())
            self._filled.append(_Filled(active, state.take_pieces(), base_offset, snapshot))
        else:
            # Nothing of it is on the disk. Its file would stay: until the new one's name is
            # synced, it is what tells after a crash where the log goes on.
            self._unstaged.append(segments.pop())
        segment = self._maker.make(base_offset, now_ms)
        segments.append(segment)
        return segment

    def roll(self, now_ms: int, base_offset: Offset | None = None) -> None:
        """Close the segment that is written, with nothing staged, and make the next one's files.

        It begins where the log ends, or at a later offset.
        """
        segment = self.stage_roll(base_offset or self._state.end_offset, now_ms)
        self.write()
        self._unstaged.clear()  # there is nothing to take back
        segment.create()
        self._dirty.add_segment(segment)

    def _begin_epoch(self, batch: Batch) -> None:
        self._state.epoch = LeaderEpoch(batch.leader_epoch)
        self._state.is_plain = False
        if batch.leader_epoch >= 0:
            epochs = self._state.epochs
            if self._epochs_before is None:
                self._epochs_before = list(epochs.starts)
            epochs.assign(LeaderEpoch(batch.leader_epoch), Offset(batch.base_offset))

    def _note_producer(
        self, segment: Segment, data: Buffer, batch: Batch, position: Position
    ) -> None:
        producers = self._state.producers
        if not batch.is_control:
            producers.apply(batch, segment.base_offset, position)
            return
        marker = find_marker(batch, data)
        completed = None if marker is None else producers.apply_marker(batch, marker)
        if completed is not None and completed.is_abort:
            self._state.is_plain = False
            segment.aborted.add(AbortedTransaction(*completed[:4]))

    # Writing.

    def write(self) -> bool:
        """Give what was staged to the disk, if anything; say whether there was.

        `StorageFullError` if it has no room for all of it.
        """
        state = self._state
        state.settle()
        if state.try_write():
            return True
        pieces = state.pieces
        if not pieces and not self._filled:
            return False
        active = state.segments[-1]
        try:
            for filled in self._filled:
                if filled.pieces:
                    filled.segment.write(filled.pieces)
                    self._dirty.add_segment(filled.segment)
            if pieces:
                active.write(pieces)
                self._dirty.add_segment(active)
        except DiskFullError as error:
            raise self._take_back(error) from error
        if self._filled:
            for filled in self._filled:
                filled.segment.note_written()
                self._close(filled)
            self._filled.clear()
        self._unstaged.clear()
        state.note_written()
        if self._epochs_before is not None:
            self._epochs_before = None
            self.note_epochs()
        return True

    def note_epochs(self) -> None:
        """The leader epochs have changed: their checkpoint is to be replaced."""
        path = f"{self._maker.directory}/{LEADER_EPOCH_CHECKPOINT}"
        self._dirty.add_checkpoint(path, self._state.epochs.render())

    def _close(self, filled: _Filled) -> None:
        """Complete a full segment. There must be room for its records, not for what can be made
        anew from them: without it, indexes are built when needed, and there is no snapshot.
        """
        segment = filled.segment
        self._dirty.has_closed = True
        self._state.is_noted = False
        try:
            segment.seal()
            for path in segment.paths[1 : 4 if segment.has_aborted else 3]:
                self._dirty.add_file(path)
        except DiskFullError:
            segment.tail = None
            segment.drop_indexes()
        with suppress(DiskFullError):
            self.write_snapshot(filled.end_offset, filled.snapshot)

    def write_snapshot(self, offset: Offset, snapshot: bytes) -> None:
        """Write the producers' state as of `offset`."""
        disk = self._maker.disk
        path = segment_path(self._maker.directory, offset, SNAPSHOT)
        snapshots = self._state.snapshots
        with suppress(DiskMissingError):
            disk.truncate(path, 0)
        if offset in snapshots:
            snapshots.remove(offset)
        try:
            disk.append(path, [snapshot])
        except DiskFullError:
            with suppress(DiskMissingError):
                disk.remove(path)
            raise
        insort(snapshots, offset)
        self._dirty.add_file(path)
        self._dirty.add_names()

    def _take_back(self, error: DiskFullError) -> StorageFullError:
        """Undo all since the last write that went well; return what to tell of it."""
        state = self._state
        segments = state.segments
        first = state.active
        if self._unstaged:
            first = self._unstaged[0]
        elif self._filled:
            first = self._filled[0].segment
        while segments and segments[-1].base_offset > first.base_offset:
            self._remove_files(segments.pop())
        if not segments or segments[-1] is not first:
            segments.append(first)
        first.undo()
        state.producers.rewind(state.written_offset)
        if self._epochs_before is not None:
            state.epochs = LeaderEpochs(self._epochs_before)
            self._epochs_before = None
        state.take_pieces()
        state.is_plain = True
        self._filled.clear()
        self._unstaged.clear()
        self.reload()
        return StorageFullError(str(error))

    def _remove_files(self, segment: Segment) -> None:
        self._dirty.remove_segment(segment)
        for path in segment.paths if segment.has_files else ():
            with suppress(DiskMissingError):
                self._maker.disk.remove(path)
        segment.forget()
