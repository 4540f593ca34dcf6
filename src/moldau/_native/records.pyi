"""The record-batch kernel: headers, checksums, record walks, columns, building."""

from collections.abc import Callable, Iterable
from typing import Any, final

Buffer = bytes | bytearray | memoryview
Headers = Iterable[tuple[str, bytes | None]]

NO_TIMESTAMP: int
"""-1: no record has a timestamp."""

def crc32c(data: Buffer, crc: int = 0) -> int:
    """CRC-32C of `data`, continuing from `crc`; in hardware where the machine has it."""

@final
class Batch:
    """The header of one v2 batch and its place in the buffer that it was read from."""

    position: int
    size: int  # bytes, the 12 of base offset and length included
    base_offset: int
    leader_epoch: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def codec(self) -> int: ...  # attributes & 7
    @property
    def is_log_append_time(self) -> bool: ...
    @property
    def is_transactional(self) -> bool: ...
    @property
    def is_control(self) -> bool: ...
    @property
    def has_delete_horizon(self) -> bool: ...
    @property
    def last_offset(self) -> int: ...

def read_batches(
    data: Buffer, start: int = 0, end: int | None = None, *, check_crc: bool = True
) -> list[Batch]:
    """Read the headers of all whole batches; a partial batch at the end is left alone.

    `CorruptBatchError` on a bad length, magic or checksum.
    """

@final
class RecordStats:
    """What a walk over a batch's records found."""

    record_count: int
    max_timestamp: int  # NO_TIMESTAMP when there is none
    max_timestamp_delta: int  # offset delta of the first record that has it
    keyless_count: int

@final
class RecordWalk:
    """Validates the records of one batch, fed in pieces, in constant memory.

    `InvalidRecordError` names the record and what is wrong: a varint too long, a length beyond its
    record, an offset delta out of order, bytes left over, fewer records than the header says.
    """

    def __init__(self, batch: Batch) -> None: ...
    def feed(self, piece: Buffer) -> None: ...
    def finish(self) -> RecordStats: ...

def patch_offsets(
    data: bytearray | memoryview, batch: Batch, *, base_offset: int, leader_epoch: int
) -> None:
    """Write the two fields that the checksum does not cover."""

def patch_timestamps(
    data: bytearray | memoryview, batch: Batch, *, max_timestamp: int, log_append_time: bool
) -> None:
    """Write the batch's largest timestamp and its timestamp type, and the checksum anew."""

@final
class Record:
    """One record as Python values."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

def decode_records(payload: Buffer, batch: Batch) -> list[Record]:
    """Decode an uncompressed payload (what follows the 61 header bytes)."""

@final
class BatchWriter:
    """Builds one v2 batch record by record."""

    def __init__(self, *, base_offset: int = 0) -> None: ...
    record_count: int
    size: int  # bytes of the batch as it stands, uncompressed, header included
    def append(
        self, timestamp: int, key: Buffer | None, value: Buffer | None, headers: Headers = ()
    ) -> int:
        """Add a record at the next offset; return its size."""
    def append_at(
        self,
        offset: int,
        timestamp: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Headers = (),
    ) -> int:
        """Add a record at `offset`, which lies behind the last one (compaction leaves gaps)."""
    def finish(
        self,
        *,
        codec: int = 0,
        compress: Callable[[memoryview], Buffer] | None = None,
        leader_epoch: int = -1,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        attributes: int = 0,
        max_timestamp: int | None = None,
    ) -> bytes:
        """Return the batch; `attributes` are those beside the codec."""

Decompress = Callable[[int, memoryview], Buffer]

@final
class Columns:
    """Records as Arrow columns; any Arrow library takes it through `__arrow_c_array__`.

    offset: int64, timestamp: timestamp[ms, UTC], timestamp_type: int8, key: binary, value: binary,
    headers: list<struct<key: utf8, value: binary>> (when asked for).
    """

    row_count: int
    def __arrow_c_schema__(self) -> Any: ...
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...

def decode_columns(
    data: Buffer,
    decompress: Decompress,
    *,
    start_offset: int = 0,
    headers: bool = True,
    check_crc: bool = True,
) -> Columns:
    """Decode all whole batches; leaves out control batches and records before `start_offset`."""

def encode_columns(
    columns: Any,
    *,
    base_offset: int = 0,
    batch_bytes_max: int = 1 << 20,
    codec: int = 0,
    compress: Callable[[memoryview], Buffer] | None = None,
    timestamp: int = -1,
) -> list[bytes]:
    """Encode an Arrow record batch (value, and key, timestamp, headers where present)."""
