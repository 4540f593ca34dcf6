"""The sparse map from offsets to positions in a segment (`.index`)."""

import sys
from array import array
from bisect import bisect_right
from typing import Final, NamedTuple

from moldau.kernel.ids import Offset, Position
from moldau.log.errors import CorruptIndexError
from moldau.log.index_pages import Page
from moldau.log.sparse_index import RELATIVE_OFFSET_MAX, SparseIndex

_SWAPPED: Final = sys.byteorder == "little"


class OffsetPosition(NamedTuple):
    """The batch at `position` ends with `offset`."""

    offset: Offset
    position: Position


class OffsetIndex(SparseIndex):
    """Entries of relative offset (int32) and position (int32); both grow."""

    entry_bytes = 8

    __slots__ = ()

    def add(self, offset: Offset, position: Position) -> None:
        """Add an entry for the batch at `position` with its last offset; `write` writes it."""
        relative = offset - self.base_offset
        assert 0 <= relative <= RELATIVE_OFFSET_MAX, f"{self.path}: {offset} does not belong here"
        assert self.count == 0 or self._last is None or relative > self._last[0]
        self._append(relative, position)

    def lookup(self, offset: Offset) -> OffsetPosition:
        """Return the greatest entry that is not above `offset`, or else the segment's start."""
        return self.lookup_span(offset)[0]

    def lookup_span(self, offset: Offset) -> tuple[OffsetPosition, int]:
        """Return what `lookup` does, and how far behind it the next entry is: 0 if not known."""
        found = self._find(offset - self.base_offset)
        if found is None:
            return self._entry(None), 0
        page, at = found
        positions = page.values
        span = positions[at + 1] - positions[at] if at + 1 < len(positions) else 0
        return self._entry(page.entry(at)), span

    def entry_at_hand(self, position: int) -> tuple[int, int] | None:
        """Return the offset and position of an entry not behind a position, but close to it.

        Every large fetch asks for one. Only the pages that readers last needed are looked at, so
        that it costs no search: there may be closer ones, or none that is at hand.
        """
        page = self._tail
        if page is None or not page.values or page.values[0] > position:
            page = self._cache.find(self, self._recent)
            if page is None or page.values[0] > position:
                return None
        at = bisect_right(page.values, position) - 1
        return self.base_offset + page.keys[at], page.values[at]

    def last(self) -> OffsetPosition:
        """Return the last entry, or the segment's start."""
        return self._entry(self._last if self.count else None)

    def is_full(self, index_bytes_max: int) -> bool:
        """Return whether `segment.index.bytes` leaves no room."""
        return self.count >= index_bytes_max // self.entry_bytes

    def check(self, *, end_offset: Offset, end_position: Position) -> None:
        """Read all entries; `CorruptIndexError` if they contradict each other or the segment."""
        self._check(end_offset)
        if self.count and self.last().position >= end_position:
            raise CorruptIndexError(self.path, f"{self.last()} lies beyond the segment's end")

    def _entry(self, entry: tuple[int, int] | None) -> OffsetPosition:
        if entry is None:
            return OffsetPosition(self.base_offset, Position(0))
        return OffsetPosition(Offset(self.base_offset + entry[0]), Position(entry[1]))

    def _decode(self, data: bytes) -> Page:
        numbers = array("i", data)
        if _SWAPPED:
            numbers.byteswap()
        return Page(numbers[::2], numbers[1::2])

    def _encode(self, page: Page, start: int) -> bytes:
        numbers = array("i", bytes((len(page.keys) - start) * self.entry_bytes))
        numbers[::2] = page.keys[start:]
        numbers[1::2] = page.values[start:]
        if _SWAPPED:
            numbers.byteswap()
        return numbers.tobytes()

    def _offsets(self, page: Page) -> "array[int]":
        return page.keys
