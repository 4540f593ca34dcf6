"""How a log is cut at its end."""

from contextlib import suppress

from moldau._native.log import Tail
from moldau.kernel.clock import Instant
from moldau.kernel.disk import DiskMissingError
from moldau.kernel.ids import Offset
from moldau.log.appender import Appender
from moldau.log.dirty import DirtyFiles
from moldau.log.extents import segment_number_of
from moldau.log.file_names import SNAPSHOT, segment_path
from moldau.log.producer_recovery import load_producers
from moldau.log.producers import Producers
from moldau.log.removal import Removal
from moldau.log.state import LogState, SegmentMaker
from moldau.log.watermarks import Watermarks


class Truncation:
    """Cuts a log of which nothing is staged, and makes everything else agree with it."""

    __slots__ = ("_appender", "_dirty", "_maker", "_removal", "_state", "_watermarks")

    def __init__(
        self,
        state: LogState,
        maker: SegmentMaker,
        appender: Appender,
        dirty: DirtyFiles,
        removal: Removal,
        watermarks: Watermarks,
    ) -> None:
        self._state = state
        self._maker = maker
        self._appender = appender
        self._dirty = dirty
        self._removal = removal
        self._watermarks = watermarks

    def find_cut(self, offset: Offset) -> Offset:
        """Return what the checkpoints must not go beyond when the log is cut at `offset`.

        A batch that holds it goes as a whole. If all go, the log may for a moment have no file.
        """
        segments = self._state.segments
        if offset < segments[0].base_offset:
            return Offset(0)
        if offset >= self._state.end_offset:
            return offset
        target = segments[segment_number_of(segments, offset)]
        found = target.find(offset)
        if found is None:
            return offset
        return Offset(min(offset, target.header_at(found.position).base_offset))

    def truncate_to(self, offset: Offset, now: Instant) -> None:
        """Cut the log at `offset`, and at the beginning of the batch that holds it."""
        state, segments = self._state, self._state.segments
        if offset >= state.end_offset:
            # It may have begun to lead at its end, and written nothing before another took over.
            if state.epochs.truncate_from_end(state.end_offset):
                self._appender.reload()
                self._appender.note_epochs()
            return
        if offset < segments[0].base_offset:
            self.start_over(offset, now)
            return
        number = segment_number_of(segments, offset)
        target = segments[number]
        cut = self.find_cut(offset)  # before anything changes, because it may be cold
        producers = load_producers(self._maker.disk, segments, state.snapshots, cut)
        self._removal.retire(segments[number + 1 :], now)
        del segments[number + 1 :]
        target.truncate_to(cut)
        if not target.size:
            target.seen_ms = now.wall_ms  # its time begins anew
        if target.has_files:
            failure = target.open_tail()
            assert failure is None, failure
        else:
            target.tail = Tail(target.base_offset, created_ms=now.wall_ms)
        self._maker.limit(target)
        self._dirty.add_segment(target)
        self._cut(cut, producers)

    def start_over(self, offset: Offset, now: Instant) -> None:
        """Forget everything; the log goes on at `offset`."""
        segments = self._state.segments
        olds = list(segments)
        segments[:] = [self._maker.make(offset, now.wall_ms)]
        self._removal.retire(olds, now)
        # Only now: the new one's name may be that of an old one.
        segments[0].create()
        self._dirty.add_segment(segments[0])
        self._state.log_start = offset
        self._state.synced = Offset(0)  # until the new file's name is
        self._cut(offset, Producers())

    def _cut(self, end_offset: Offset, producers: Producers) -> None:
        """Make everything else agree with a log that ends at `end_offset`."""
        state = self._state
        state.producers = producers
        state.log_start = min(state.log_start, end_offset)
        for snapshot in [snapshot for snapshot in state.snapshots if snapshot > end_offset]:
            state.snapshots.remove(snapshot)
            with suppress(DiskMissingError):
                self._maker.disk.remove(segment_path(self._maker.directory, snapshot, SNAPSHOT))
        if state.epochs.truncate_from_end(end_offset):
            self._appender.note_epochs()
        self._appender.reload()
        self._dirty.cut(end_offset)
        state.synced = min(state.synced, end_offset)
        self._watermarks.retreat(end_offset)
