"""The second pass: what stays of a group of segments becomes one new segment."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from moldau._native.compact import KeyMap, Sieve
from moldau._native.records import Batch
from moldau.kernel.disk import Disk, DiskMissingError
from moldau.kernel.ids import Offset
from moldau.log.aborted_index import AbortedIndex
from moldau.log.compaction.plan import ClosedSegment, LogView
from moldau.log.compaction.segment_reader import (
    SPECIAL_BATCHES_MAX,
    SegmentReader,
    batch_in,
    records_of,
)
from moldau.log.compaction.swap import Replacement, discard
from moldau.log.compaction.transactions import SeenTransactions
from moldau.log.file_names import (
    ABORTED_INDEX,
    CLEANED,
    LOG,
    OFFSET_INDEX,
    TIME_INDEX,
    segment_path,
)
from moldau.records.compression import Codec, compress

_STREAMS: Final = (LOG, OFFSET_INDEX, TIME_INDEX)
LOG_BYTES_MAX: Final = (1 << 31) - 1


class SegmentOverflowError(Exception):
    """The records that stay do not fit into one segment: compressed anew, they can grow."""


@dataclass(frozen=True, slots=True)
class CompactionRules:
    """What decides over all segments of one compaction."""

    log: LogView
    keys: KeyMap
    keys_end: Offset
    """Where the range ends that the keys were collected from."""
    end: Offset
    """Where the range ends that may be compacted."""
    now_ms: int

    def needed_offsets(self) -> list[int]:
        """Return the last offsets of batches that stay even if they are empty, ascending.

        An active producer's last batch has its sequence number, which it must follow; the last
        batch of the range has the offset up to which there were records.
        """
        producers = self.log.last_records.values()
        needed = {r.last_data_offset for r in producers if r.last_data_offset is not None}
        return sorted({*(offset for offset in needed if offset < self.end), self.end - 1})

    def needs_marker(self, batch: Batch) -> bool:
        """Return whether a marker is all that is left to say what its producer's epoch is."""
        last = self.log.last_records.get(batch.producer_id) if batch.producer_id >= 0 else None
        return (
            last is not None
            and last.last_data_offset is None
            and last.producer_epoch == batch.producer_epoch
        )


@dataclass(slots=True)
class RewriteStats:
    """What was read and what was kept."""

    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_kept: int = 0
    records_keyless: int = 0


class Rewrite:
    """Writes `<base offset>.log.cleaned` and its indexes, on the device when all steps are done."""

    def __init__(
        self,
        disk: Disk,
        rules: CompactionRules,
        group: Sequence[ClosedSegment],
        transactions: SeenTransactions,
        needed: Sequence[int],
        stats: RewriteStats,
    ) -> None:
        base_offset = group[0].base_offset
        self.replacement = Replacement(
            rules.log.directory, base_offset, tuple(s.base_offset for s in group)
        )
        self._disk = disk
        self._rules = rules
        self._group = group
        self._transactions = transactions
        self._needed = frozenset(needed)
        self._stats = stats
        self._paths = [self._path(stream) for stream in _STREAMS]
        self._aborted = AbortedIndex(disk, self._path(ABORTED_INDEX), base_offset)
        self._sieve = Sieve(
            rules.keys,
            base_offset=base_offset,
            end_offset=rules.keys_end,
            now_ms=rules.now_ms,
            delete_retention_ms=rules.log.config.delete_retention_ms,
            needed=needed,
            index_interval_bytes=rules.log.config.index_interval_bytes,
        )

    def steps(self, io_bytes: int) -> Iterator[int]:
        """Do the work, a bounded piece at a time; yield how many bytes were read and written."""
        discard(self._disk, self.replacement)  # what an earlier attempt has left
        for path in self._paths:
            self._disk.append(path, ())
        for segment in self._group:
            path = segment_path(self._rules.log.directory, segment.base_offset)
            yield from self._segment(SegmentReader(self._disk, path, 0, io_bytes))
        self._sieve.finish()
        self._write()
        sieve, stats = self._sieve, self._stats
        stats.records_read += sieve.records_read
        stats.records_kept += sieve.records_kept
        stats.records_keyless += sieve.records_keyless
        for path in (*self._paths, self._aborted.path):
            try:
                self._disk.sync(path)
            except DiskMissingError:
                assert path == self._aborted.path, f"{path} is gone"
            yield 0

    def _segment(self, reader: SegmentReader) -> Iterator[int]:
        while data := reader.read():
            position = special_count = 0
            while True:
                position, special = self._sieve.run(data, position)
                if not special:
                    break
                self._special(data, batch_in(data, position, special))
                position += special
                special_count += 1
                if special_count % SPECIAL_BATCHES_MAX == 0:
                    yield 0
            written = self._write()
            self._stats.bytes_read += position
            yield position + written
            reader.advance(data, position)

    def _write(self) -> int:
        sieve = self._sieve
        if sieve.log_bytes > LOG_BYTES_MAX:
            raise SegmentOverflowError(f"{self._paths[0]} grew to {sieve.log_bytes} bytes")
        pending = sieve.pending_bytes
        sieve.drain(self._append)
        self._aborted.write()
        self._stats.bytes_written += pending
        return pending

    def _append(self, stream: Literal[0, 1, 2], data: memoryview) -> None:
        self._disk.append(self._paths[stream], [data])

    def _special(self, data: bytes, batch: Batch) -> None:
        if batch.is_control:
            self._control(data, batch)
            return
        keep_empty = batch.last_offset in self._needed
        if self._transactions.see_data(batch):
            if keep_empty:
                self._sieve.keep_empty(batch)
            return
        pack = None if batch.codec == Codec.NONE else partial(compress, batch.codec)
        self._sieve.sift(data, batch, records_of(data, batch), keep_empty=keep_empty, compress=pack)

    def _control(self, data: bytes, batch: Batch) -> None:
        """Keep a marker until its transaction's data is gone and `delete.retention.ms` passed."""
        fate = self._transactions.see_control(batch, data)
        if fate.aborted is not None:
            self._aborted.add(fate.aborted)
        is_expired = (
            fate.is_obsolete
            and batch.has_delete_horizon
            and batch.base_timestamp <= self._rules.now_ms
        )
        if batch.record_count and not is_expired:
            set_horizon = fate.is_obsolete and not batch.has_delete_horizon
            self._sieve.copy(data, batch, set_horizon=set_horizon)
        elif batch.last_offset in self._needed or self._rules.needs_marker(batch):
            self._sieve.keep_empty(batch)

    def _path(self, suffix: str) -> str:
        base_offset = self.replacement.base_offset
        return segment_path(self._rules.log.directory, base_offset, suffix) + CLEANED
