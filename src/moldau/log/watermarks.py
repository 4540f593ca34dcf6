"""How far readers of a partition see, and where in the files that is."""

from bisect import bisect_left
from collections import deque
from typing import Final

from moldau.kernel.ids import Offset, Position
from moldau.log.extents import Isolation, Place, segment_number_of
from moldau.log.state import LogState

WRITES_KEPT: Final = 64
_HIGH_WATERMARK: Final = Isolation.HIGH_WATERMARK  # a member is slow to look up


class Watermarks:
    """The high watermark and the stable offset of a log, with their places.

    The ends of the last writes are remembered: the high watermark moves from one to the next, and
    readers at the end of the log ask for exactly these offsets.
    """

    __slots__ = ("_state", "_writes")

    def __init__(self, state: LogState) -> None:
        self._state = state
        state.high_watermark = state.log_start
        self._writes: deque[Place] = deque(maxlen=WRITES_KEPT)

    @property
    def high(self) -> Offset:
        """Below it every in-sync replica has everything."""
        return self._state.high_watermark

    @property
    def stable(self) -> Offset:
        """Below it every transaction is decided as well."""
        unstable = self._state.producers.first_unstable
        if unstable is None or unstable.first_offset >= self._state.high_watermark:
            return self._state.high_watermark
        return max(unstable.first_offset, self._state.log_start)

    def note_write(self) -> None:
        """A write went well."""
        active = self._state.segments[-1]
        tail = active.tail
        assert tail is not None, "the last segment is written"
        self._writes.append(
            Place(tail.marked_end_offset, active.base_offset, Position(active.size))
        )

    def advance(self, offset: Offset) -> bool:
        """Move the high watermark up to `offset`, as far as the log goes; say whether it moved."""
        offset = min(offset, self._state.written_offset)
        if offset <= self._state.high_watermark:
            return False
        self._set(offset)
        self._state.producers.note_committed(offset)
        return True

    def retreat(self, offset: Offset) -> None:
        """The log was cut at `offset`."""
        self._writes.clear()
        self._set(max(min(self._state.high_watermark, offset), self._state.log_start))
        # The producers were made anew: they do not know how far the log is committed.
        self._state.producers.note_committed(self._state.high_watermark)

    def forget_places(self) -> None:
        """Segments were replaced."""
        self._writes.clear()
        self._state.high_place = None

    def _set(self, offset: Offset) -> None:
        self._state.high_watermark = offset
        self._state.high_place = self.find_place(offset)

    def find_place(self, offset: Offset) -> Place | None:
        """Return the place of an offset if it is remembered."""
        writes = self._writes
        if not writes or not writes[0][0] <= offset <= writes[-1][0]:
            return None
        found = writes[-1]
        if found[0] != offset:
            found = writes[bisect_left(writes, (offset,))]
        return found if found[0] == offset else None

    def bound(self, isolation: Isolation) -> Place:
        """Return the end of what a reader sees."""
        if isolation is _HIGH_WATERMARK:
            return self._state.high_place or self._high_bound()
        if isolation is Isolation.STABLE:
            return self._stable_bound()
        active = self._state.active
        return Place(self._state.written_offset, active.base_offset, Position(active.size))

    def _high_bound(self) -> Place:
        place = self._state.high_place
        if place is None:
            place = self._state.high_place = self._locate(self._state.high_watermark)
        return place

    def _stable_bound(self) -> Place:
        stable = self.stable
        if stable == self._state.high_watermark:
            return self._high_bound()
        unstable = self._state.producers.first_unstable
        if unstable is not None and unstable.first_offset == stable and unstable.position >= 0:
            return Place(stable, unstable.segment_base_offset, unstable.position)
        return self._locate(stable)

    def _locate(self, offset: Offset) -> Place:
        """Look for an offset whose place is not remembered."""
        segments = self._state.segments
        segment = segments[max(0, segment_number_of(segments, offset))]
        found = segment.find(offset)
        position = Position(segment.size) if found is None else found.position
        return Place(offset, segment.base_offset, position)
