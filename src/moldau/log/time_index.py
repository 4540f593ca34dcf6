"""The sparse map from timestamps to offsets in a segment (`.timeindex`)."""

from array import array
from struct import Struct
from typing import NamedTuple

from moldau.kernel.ids import Offset
from moldau.log.index_pages import Page
from moldau.log.sparse_index import RELATIVE_OFFSET_MAX, SparseIndex

_ENTRY = Struct(">qi")


class TimestampOffset(NamedTuple):
    """No record up to `offset` is younger than `timestamp`; -1 stands for none."""

    timestamp: int
    offset: Offset


class TimeIndex(SparseIndex):
    """Entries of timestamp (int64) and relative offset (int32); both grow.

    The last entry of a closed segment is the largest timestamp in it.
    """

    entry_bytes = _ENTRY.size

    __slots__ = ()

    def add(self, timestamp: int, offset: Offset) -> None:
        """Add the largest timestamp so far and the offset that has it, unless it is known already.

        Called along with every entry of the offset index, and when the segment is closed.
        """
        relative = offset - self.base_offset
        assert 0 <= relative <= RELATIVE_OFFSET_MAX, f"{self.path}: {offset} does not belong here"
        last = self.last()
        if timestamp > last.timestamp:
            assert offset >= last.offset, f"{self.path}: {offset} lies before {last.offset}"
            self._append(timestamp, relative)

    def lookup(self, timestamp: int) -> TimestampOffset:
        """Return the greatest entry that is not above `timestamp`, or -1 at the segment's start."""
        found = self._find(timestamp)
        return self._entry(None if found is None else found[0].entry(found[1]))

    def last(self) -> TimestampOffset:
        """Return the last entry, or -1 at the segment's start; reads one entry at most."""
        return self._entry(self._last if self.count else None)

    def is_full(self, index_bytes_max: int) -> bool:
        """Return whether `segment.index.bytes` leaves room only for the entry made on closing."""
        return self.count >= index_bytes_max // self.entry_bytes - 1

    def check(self, *, end_offset: Offset) -> None:
        """Read all entries; `CorruptIndexError` if they contradict each other or the segment."""
        self._check(end_offset)

    def _entry(self, entry: tuple[int, int] | None) -> TimestampOffset:
        if entry is None:
            return TimestampOffset(-1, self.base_offset)
        return TimestampOffset(entry[0], Offset(self.base_offset + entry[1]))

    def _decode(self, data: bytes) -> Page:
        page = Page(array("q"), array("i"))
        for timestamp, relative in _ENTRY.iter_unpack(data):
            page.keys.append(timestamp)
            page.values.append(relative)
        return page

    def _encode(self, page: Page, start: int) -> bytes:
        return b"".join(map(_ENTRY.pack, page.keys[start:], page.values[start:]))

    def _offsets(self, page: Page) -> "array[int]":
        return page.values
