"""Records to and from Arrow columns, through Arrow's own C interface and without its library."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, final

from moldau._native.records import Batch, Buffer

Decompress = Callable[[int, memoryview], Buffer]

class ArrowExporter(Protocol):
    """What every Arrow library's record batch is."""

    def __arrow_c_array__(
        self, requested_schema: object | None = None, /
    ) -> tuple[object, object]: ...

@final
class Columns:
    """Records as Arrow columns, which any Arrow library takes (`pyarrow.record_batch(columns)`).

    offset: int64, timestamp: timestamp[ms, UTC], timestamp_type: int8 (1: log append time), key:
    binary, value: binary, headers: list<struct<key: utf8, value: binary>> when asked for. A record
    without timestamp has -1. A header key that is not UTF-8 has its bad bytes replaced.
    """

    def __init__(self, *, headers: bool = True, column_bytes_max: int = 0x7FFFFFFF) -> None:
        """Make columns without rows; `decode_columns` fills them."""
    @property
    def row_count(self) -> int: ...
    def __len__(self) -> int: ...
    def place(self, topic: str, partition: int) -> None:
        """Say which partition all the rows are from: two more columns, in front of the others."""
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...

def decode_columns(
    data: Buffer,
    batches: Iterable[Batch],
    decompress: Decompress | None = None,
    *,
    start_offset: int = 0,
    headers: bool = True,
    column_bytes_max: int = 0x7FFFFFFF,
) -> Columns:
    """Decode the records at or behind `start_offset` of these batches of `data`.

    The caller chooses the batches, such as those of transactions that were not aborted; control
    batches are left out in any case. `decompress` is called with a codec and a payload, and bounds
    what it returns. `InvalidRecordError` on a malformed batch, `OverflowError` when one column has
    more than `column_bytes_max` bytes: then decode fewer batches at once.
    """

def export_stream(chunks: Iterable[Columns]) -> object:
    """Return Arrow's stream of these, at least one, as a capsule; they may have other readers.

    All have the columns of the first.
    """

class ArrowStream(Protocol):
    """What every Arrow library's table is."""

    def __arrow_c_stream__(self, requested_schema: object | None = None, /) -> object: ...

def open_arrow(data: ArrowExporter | ArrowStream) -> Iterator[ArrowRows]:
    """Yield the record batches of anything with Arrow's PyCapsule interface.

    Columns: value and, where present, key (binary or utf8, large or not, or null), timestamp (int64
    milliseconds or a timestamp of any unit), headers (list<struct<utf8, binary>> or map), partition
    (int32 or int64); other columns are overlooked. `ProtocolError` names what cannot be encoded.
    """

@final
class ArrowRows:
    """A record batch whose rows go to partitions."""

    def __len__(self) -> int: ...
    def by_partition(self, partition_count: int) -> list[tuple[int, bytes | None]]:
        """Return the rows of each partition that has some, in their order: (partition, rows).

        None stands for all rows.

        A row goes where its column partition says, else by the hash of its key; -1 has the rows
        that have neither. `ValueError` names a row with a partition that there is not.
        """
    def encode(
        self,
        rows: bytes | None,
        first: int,
        *,
        timestamp: int,
        batch_bytes_max: int,
        codec: int,
        compress: Callable[[memoryview], Buffer] | None,
    ) -> tuple[bytes, int]:
        """Encode a batch from the `first` of these rows on, None for all; with the first left.

        It begins at offset 0, as a producer sends it, and has at most `batch_bytes_max` bytes
        before compression; a record larger than that has a batch of its own. `timestamp` stands for
        null.
        """
