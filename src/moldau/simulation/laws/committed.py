"""What is committed in a partition never changes, and its transactions end once.

A `CommittedLog` follows one partition from batch to batch as its high watermark moves, and outlives
the node: what a restart brings back has to be what was committed before.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from moldau._native.records import Batch, Record, read_batches
from moldau.kernel.disk import Buffer
from moldau.kernel.errors import CorruptBatchError
from moldau.kernel.ids import TopicPartition
from moldau.log.markers import find_marker
from moldau.log.partition import PartitionLog
from moldau.records.batch import read_records
from moldau.simulation.laws.violation import LawViolation

ReadFile = Callable[[str, int], Buffer]
"""Returns a file's content from a position on, as the node sees it; the look leaves no trace."""

RecordsLaw = Callable[[Sequence[Record]], None]
"""Checks the records of one more batch, such as those that a coordinator writes."""

NO_EPOCH: Final = -1


class LogEnds(NamedTuple):
    """The ends of a log, in the order that they have."""

    log_start: int
    stable_offset: int
    high_watermark: int
    log_end: int


def ends_of(log: PartitionLog) -> LogEnds:
    """Return a log's ends; `LawViolation` if they are out of order."""
    ends = LogEnds(log.log_start, log.stable_offset, log.high_watermark, log.log_end)
    if not ends.log_start <= ends.stable_offset <= ends.high_watermark <= ends.log_end:
        raise LawViolation("watermarks", f"{log.directory} has {ends}")
    return ends


class CommittedLog:
    """The committed batches of one partition."""

    def __init__(self, partition: TopicPartition, law: RecordsLaw | None = None) -> None:
        self._partition = partition
        self._law = law
        self._crcs: dict[int, tuple[int, int]] = {}
        self._end = 0
        self._place = "", 0
        self._epochs: dict[int, _ProducerEpochs] = {}

    @property
    def end(self) -> int:
        """The offset up to which the partition was followed."""
        return self._end

    def follow(self, log: PartitionLog, read_file: ReadFile) -> None:
        """Look at what was committed since the last time."""
        ends = ends_of(log)
        if ends.high_watermark < self._end:
            raise LawViolation(
                "committed records",
                f"{self._partition} ends at {ends.high_watermark}: {self._end} was committed",
            )
        if ends.high_watermark == self._end:
            return
        start = max(self._end, ends.log_start)
        try:
            self._follow(log, read_file, start, ends.high_watermark)
        except CorruptBatchError:
            # What was committed is no more where it was; the batches tell what is there instead.
            self._place = "", 0
            with self._readable():
                self._follow(log, read_file, start, ends.high_watermark)
        self._end = ends.high_watermark

    def _follow(self, log: PartitionLog, read_file: ReadFile, start: int, end: int) -> None:
        for path, position, data in _files(log, read_file, start, self._place):
            for batch in read_batches(data):
                if batch.last_offset >= end:
                    break
                self._place = path, position + batch.position + batch.size
                if batch.last_offset >= start:
                    self._add(data, batch)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Have batches read that must be whole."""
        try:
            yield
        except CorruptBatchError as error:
            raise LawViolation(
                "committed records", f"{self._partition} cannot be read: {error}"
            ) from error

    def check_whole(self, log: PartitionLog, read_file: ReadFile) -> None:
        """Check that everything that was committed is still there, but for what may be removed."""
        self.follow(log, read_file)
        if log.config.is_compacted:
            return
        with self._readable():
            found = {
                batch.base_offset: (batch.last_offset, batch.crc)
                for _, _, data in _files(log, read_file, log.log_start)
                for batch in read_batches(data)
                if log.log_start <= batch.last_offset < self._end
            }
        expected = {base: batch for base, batch in self._crcs.items() if batch[0] >= log.log_start}
        if found != expected:
            wrong = min(set(found.items()) ^ set(expected.items()))[0]
            raise LawViolation(
                "committed records",
                f"{self._partition} has {found.get(wrong)} at {wrong}, where {expected.get(wrong)}"
                " was committed (last offset, CRC)",
            )
        self._crcs = expected

    def _add(self, data: Buffer, batch: Batch) -> None:
        self._crcs[batch.base_offset] = batch.last_offset, batch.crc
        if batch.producer_id >= 0:
            epochs = self._epochs.setdefault(batch.producer_id, _ProducerEpochs())
            if batch.is_control:
                epochs.note_marker(self._partition, data, batch)
            else:
                epochs.note_data(self._partition, batch)
        if self._law is not None and not batch.is_control:
            self._law(read_records(data, batch))


class _ProducerEpochs:
    """The epochs of one producer id in one partition."""

    def __init__(self) -> None:
        self._epoch = NO_EPOCH
        self._marker_epoch = NO_EPOCH
        self._is_open = False

    def note_data(self, partition: TopicPartition, batch: Batch) -> None:
        if batch.producer_epoch < max(self._epoch, self._marker_epoch):
            raise LawViolation(
                "fenced producer",
                f"{partition} has records of {batch.producer_id} at {batch.base_offset} with epoch"
                f" {batch.producer_epoch} behind {max(self._epoch, self._marker_epoch)}",
            )
        self._epoch = batch.producer_epoch
        self._is_open = self._is_open or batch.is_transactional

    def note_marker(self, partition: TopicPartition, data: Buffer, batch: Batch) -> None:
        if find_marker(batch, data) is None:
            return
        where = f"{partition} has a marker of {batch.producer_id} at {batch.base_offset}"
        if batch.producer_epoch < self._epoch:
            raise LawViolation(
                "fenced marker", f"{where} with epoch {batch.producer_epoch} behind {self._epoch}"
            )
        if batch.producer_epoch == self._marker_epoch and not self._is_open:
            raise LawViolation(
                "one marker", f"{where} with the epoch of the one before, and no data"
            )
        self._marker_epoch = batch.producer_epoch
        self._is_open = False


def stored(log: PartitionLog, read_file: ReadFile) -> Iterator[tuple[Buffer, Batch]]:
    """Walk all batches of a log that are written, each with the data that it is in."""
    for _, _, data in _files(log, read_file, log.log_start):
        for batch in read_batches(data):
            yield data, batch


def _files(
    log: PartitionLog, read_file: ReadFile, start: int, known: tuple[str, int] = ("", 0)
) -> Iterator[tuple[str, int, Buffer]]:
    """Yield the written files that have batches from `start` on, with where their bytes begin.

    One file is read only behind a position that is known.
    """
    segments = log.segments
    for number, segment in enumerate(segments):
        is_last = number + 1 == len(segments)
        if segment.size and (is_last or segments[number + 1].base_offset > start):
            position = known[1] if known[0] == segment.path else 0
            data = memoryview(read_file(segment.path, position))
            yield segment.path, position, data[: max(0, segment.size - position)]
