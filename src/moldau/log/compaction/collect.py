"""The first pass: the last offset of every key in the dirty part of a log."""

from collections.abc import Iterator

from moldau._native.compact import KeyMap
from moldau.kernel.disk import Disk, DiskMissingError
from moldau.kernel.ids import Offset
from moldau.log.compaction.plan import ClosedSegment, CompactionPlan, segments_from
from moldau.log.compaction.segment_reader import (
    SPECIAL_BATCHES_MAX,
    SegmentReader,
    batch_in,
    records_of,
)
from moldau.log.compaction.transactions import SeenTransactions, collect_aborted
from moldau.log.errors import CorruptIndexError
from moldau.log.file_names import OFFSET_INDEX, segment_path
from moldau.log.index_pages import PageCache
from moldau.log.offset_index import OffsetIndex

_INDEX_CACHE_BYTES = 64 << 10


class KeyCollection:
    """Fills `keys` from the dirty segments; `end_offset` is where the map's knowledge ends."""

    def __init__(self, disk: Disk, plan: CompactionPlan, keys: KeyMap, io_bytes: int) -> None:
        self.end_offset = plan.first_dirty
        self._disk = disk
        self._plan = plan
        self._keys = keys
        self._io_bytes = io_bytes

    def steps(self) -> Iterator[int]:
        """Do the work, a bounded piece at a time; yield how many bytes were read."""
        plan = self._plan
        aborted = collect_aborted(self._disk, plan.log, plan.first_dirty, plan.end)
        transactions = SeenTransactions(aborted)
        dirty = [s for s in segments_from(plan.log, plan.first_dirty) if s.base_offset < plan.end]
        for number, segment in enumerate(dirty):
            yield from self._segment(segment, transactions)
            if self._keys.full_at >= 0:
                self.end_offset = Offset(self._keys.full_at)
                return
            # Compaction and aborted transactions leave gaps: the range ends where the next begins.
            following = dirty[number + 1].base_offset if number + 1 < len(dirty) else plan.end
            self.end_offset = following

    def _segment(self, segment: ClosedSegment, transactions: SeenTransactions) -> Iterator[int]:
        path = segment_path(self._plan.log.directory, segment.base_offset)
        reader = SegmentReader(self._disk, path, self._start(segment), self._io_bytes)
        first = self._plan.first_dirty
        while data := reader.read():
            position = special_count = 0
            while self._keys.full_at < 0:
                position, special = self._keys.feed(data, position, first)
                if not special:
                    break
                self._special(data, position, special, transactions)
                position += special
                special_count += 1
                if special_count % SPECIAL_BATCHES_MAX == 0:
                    yield 0
            yield position
            if self._keys.full_at >= 0:
                return
            reader.advance(data, position)

    def _special(
        self, data: bytes, position: int, size: int, transactions: SeenTransactions
    ) -> None:
        batch = batch_in(data, position, size)
        if batch.is_control:
            transactions.see_control(batch, data)
        elif not transactions.see_data(batch):
            self._keys.feed_records(batch, records_of(data, batch), self._plan.first_dirty)

    def _start(self, segment: ClosedSegment) -> int:
        """Return where to begin: the first dirty segment may be clean in its first part."""
        first = self._plan.first_dirty
        if first <= segment.base_offset:
            return 0
        path = segment_path(self._plan.log.directory, segment.base_offset, OFFSET_INDEX)
        cache = PageCache(_INDEX_CACHE_BYTES)
        try:
            return OffsetIndex(self._disk, path, segment.base_offset, cache).lookup(first).position
        except (CorruptIndexError, DiskMissingError):
            return 0
