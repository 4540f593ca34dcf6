"""How far readers of a partition see, and where in the files that is."""

from typing import Final

from moldau._native.append import Place
from moldau.kernel.ids import Offset, Position
from moldau.log.extents import Isolation, segment_number_of
from moldau.log.state import LogState

_HIGH_WATERMARK: Final = Isolation.HIGH_WATERMARK  # a member is slow to look up


class Watermarks:
    """The high watermark and the stable offset of a log, with their places.

    The log's end keeps the high watermark, and remembers where the last writes ended: the high
    watermark moves from one to the next, and readers at the end of the log ask for these offsets.
    """

    __slots__ = ("_state",)

    def __init__(self, state: LogState) -> None:
        self._state = state
        state.set_high_watermark(state.log_start)

    @property
    def high(self) -> Offset:
        """Below it every in-sync replica has everything."""
        return self._state.high_watermark

    @property
    def stable(self) -> Offset:
        """Below it every transaction is decided as well."""
        high = self._state.high_watermark
        if not self._state.producers.unstable:
            return high
        unstable = self._state.producers.first_unstable
        if unstable is None or unstable.first_offset >= high:
            return high
        return max(unstable.first_offset, self._state.log_start)

    def retreat(self, offset: Offset) -> None:
        """The log was cut at `offset`."""
        state = self._state
        state.forget_places()
        state.set_high_watermark(max(min(state.high_watermark, offset), state.log_start))
        # The producers were made anew: they do not know how far the log is committed.
        state.producers.note_committed(state.high_watermark)

    def bound(self, isolation: Isolation) -> Place:
        """Return the end of what a reader sees."""
        if isolation is _HIGH_WATERMARK:
            return self._state.high_place or self._high_bound()
        if isolation is Isolation.STABLE:
            return self._stable_bound()
        active = self._state.active
        return Place(self._state.written_offset, active.base_offset, Position(active.size))

    def _high_bound(self) -> Place:
        state = self._state
        if state.high_place is None:
            state.high_place = self._locate(state.high_watermark)
        return state.high_place

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
