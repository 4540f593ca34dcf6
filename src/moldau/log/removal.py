"""How segments leave a log: by retention, by a moved log start, by compaction, by truncation."""

from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from moldau.kernel.clock import Instant
from moldau.kernel.disk import DiskFullError, DiskMissingError
from moldau.kernel.ids import Offset
from moldau.log.appender import Appender
from moldau.log.dirty import DirtyFiles
from moldau.log.file_names import DELETED, SNAPSHOT, relocated, segment_path
from moldau.log.retention import count_expired
from moldau.log.segment import Segment
from moldau.log.state import LogState, SegmentMaker


class Removal:
    """Takes segments out of the log, and says when their files may be removed.

    The first segment that is left must have its name on the device before: without any file, a
    crash would let the offsets begin anew.
    """

    __slots__ = ("_appender", "_dirty", "_is_durable", "_maker", "_retired", "_state")

    def __init__(
        self,
        state: LogState,
        maker: SegmentMaker,
        appender: Appender,
        dirty: DirtyFiles,
        *,
        is_durable: bool,
    ) -> None:
        self._state = state
        self._maker = maker
        self._appender = appender
        self._dirty = dirty
        self._is_durable = is_durable  # else there are no crashes to survive
        self._retired: deque[tuple[float, list[str]]] = deque()  # when they may be removed

    def apply_retention(self, up_to: Offset, now: Instant) -> int:
        """Take out what has expired and ends below `up_to`; return how many segments that were.

        The segment that is written goes only after another has taken its place, so what is left of
        an idle log may take a sync and a second call.
        """
        state = self._state
        segments = state.segments
        count = count_expired(
            segments,
            self._maker.config,
            log_start=state.log_start,
            up_to=up_to,
            end_offset=state.end_offset,
            now_ms=now.wall_ms,
        )
        if count == len(segments):
            with suppress(DiskFullError):
                self._appender.roll(now.wall_ms)
        count = min(count, len(segments) - 1)
        while count and self._is_durable and not segments[count].is_durable:
            count -= 1
        self.retire(segments[:count], now)
        del segments[:count]
        if count and segments[0].base_offset > state.log_start:
            self.advance_log_start(segments[0].base_offset)
        return count

    def advance_log_start(self, offset: Offset) -> None:
        """Records below `offset` are gone for readers."""
        self._state.log_start = offset
        if self._state.epochs.truncate_from_start(offset):
            self._appender.note_epochs()

    def retire(self, segments: Sequence[Segment], now: Instant) -> None:
        """Rename the files of segments that leave the log, with the snapshots at their start."""
        paths: list[str] = []
        for segment in segments:
            self._dirty.remove_segment(segment)
            paths += segment.retire()
            if segment.base_offset in self._state.snapshots:
                self._state.snapshots.remove(segment.base_offset)
                path = segment_path(self._maker.directory, segment.base_offset, SNAPSHOT)
                with suppress(DiskMissingError):
                    self._maker.disk.rename(path, path + DELETED)
                    paths.append(path + DELETED)
        self.add_retired(paths, now)

    def add_retired(self, paths: list[str], now: Instant) -> None:
        """Have files that were renamed removed when their time has come."""
        if paths:
            self._dirty.add_names()
            delay = self._maker.config.file_delete_delay_ms / 1000
            self._retired.append((now.monotonic + delay, paths))

    def relocate(self, folder: str) -> None:
        """The partition's folder has another name."""
        self._retired = deque(
            (at, [relocated(path, folder) for path in paths]) for at, paths in self._retired
        )

    def take_removable(self, now: Instant) -> list[str]:
        """Return the files that no fetch can be reading any more; the caller removes them."""
        paths: list[str] = []
        while self._retired and self._retired[0][0] <= now.monotonic:
            paths += self._retired.popleft()[1]
        return paths
