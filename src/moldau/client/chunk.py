"""What one fetch brought of one partition, read record by record or as Arrow columns."""

from collections.abc import Sequence

from moldau._native.columns import Columns
from moldau._native.fetched import Record, RecordReader
from moldau._native.records import Batch, read_batches
from moldau.kernel.ids import TopicPartition
from moldau.records.batch import payload_of
from moldau.records.columns import read_columns
from moldau.records.compression import Codec, decompress


class Chunk:
    """Some batches in a row; those that nobody is to see are left out already."""

    __slots__ = (
        "_batches",
        "_check_crcs",
        "_data",
        "_next",
        "_reader",
        "following",
        "generation",
        "key",
    )

    def __init__(
        self,
        key: TopicPartition,
        generation: int,
        data: memoryview,
        batches: Sequence[Batch],
        following: int,
        *,
        check_crcs: bool,
    ) -> None:
        self.key = key
        self.generation = generation
        self.following = following
        """The offset behind it."""
        self._data = data
        self._batches = batches
        self._check_crcs = check_crcs
        self._next = 0
        self._reader: RecordReader | None = None

    def read(self, records: list[Record], count: int, position: int) -> bool:
        """Append the next records from a position on, `count` at most; False at the end.

        `ProtocolError` if a batch is damaged: those before it were appended.
        """
        enough = len(records) + count
        while len(records) < enough:
            if self._reader is None:
                if self._next == len(self._batches):
                    return False
                self._reader = self._open(self._batches[self._next])
                self._next += 1
            if not self._reader.read(records, enough - len(records), position):
                self._reader = None
        return True

    def _open(self, batch: Batch) -> RecordReader:
        if self._check_crcs:
            read_batches(self._data, batch.position, batch.position + batch.size)
        payload: bytes | memoryview = payload_of(self._data, batch)
        # Compaction may leave a batch without records, and then without a payload to open.
        if batch.codec != Codec.NONE and batch.record_count:
            payload = decompress(batch.codec, payload)
        return RecordReader(payload, batch, *self.key)

    def columns(self, position: int) -> list[Columns]:
        """Return the records from a position on; `ProtocolError` if a batch is damaged."""
        begun = 1 if self._reader is not None else 0
        batches = self._batches[self._next - begun :]
        if not batches:
            return []
        if self._check_crcs:
            last = batches[-1]
            read_batches(self._data, batches[0].position, last.position + last.size)
        try:
            made = [read_columns(self._data, batches, start_offset=position)]
        except OverflowError:
            # Together they are too large for one column, so each has its own.
            made = [read_columns(self._data, [each], start_offset=position) for each in batches]
        for each in made:
            each.place(*self.key)
        return [each for each in made if len(each)]

    def close(self) -> object:
        """Let the memory go, and return whose it is."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._batches = ()
        owner, self._data = self._data.obj, memoryview(b"")
        return owner
