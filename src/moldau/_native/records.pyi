"""The record-batch kernel: headers, checksums, record walks, Python records, building."""

from collections.abc import Callable, Iterable
from typing import ClassVar, final

Buffer = bytes | bytearray | memoryview
Headers = Iterable[tuple[str, Buffer | None]]

NO_TIMESTAMP: int
"""-1: a record, or all records of a batch, have no timestamp."""

CRC32C_IMPLEMENTATION: str
"""What `crc32c` runs on: "sse4.2", "armv8" or "tables"."""

def crc32c(data: Buffer, crc: int = 0) -> int:
    """CRC-32C of `data`, continuing from `crc`; in hardware where the machine has it."""

def crc32c_tables(data: Buffer, crc: int = 0) -> int:
    """The same by tables on every machine, to compare with."""

@final
class Batch:
    """The header of one v2 batch and its place in the buffer that it was read from."""

    @property
    def position(self) -> int: ...
    @property
    def size(self) -> int: ...  # bytes, the 12 of base offset and length included
    @property
    def base_offset(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def crc(self) -> int: ...
    @property
    def attributes(self) -> int: ...
    @property
    def last_offset_delta(self) -> int: ...
    @property
    def base_timestamp(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...
    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...
    @property
    def base_sequence(self) -> int: ...
    @property
    def record_count(self) -> int: ...
    @property
    def codec(self) -> int: ...
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
    """What a walk over a batch's records found.

    Timestamps are the records' own; under log append time the batch's largest holds instead.
    """

    @property
    def record_count(self) -> int: ...
    @property
    def max_timestamp(self) -> int:
        """The largest timestamp, NO_TIMESTAMP when no record has one."""
    @property
    def max_timestamp_delta(self) -> int:
        """The offset delta of the first record with the largest timestamp, -1 when none has one."""
    @property
    def min_timestamp(self) -> int:
        """The smallest timestamp, records without one left out."""
    @property
    def keyless_count(self) -> int: ...

@final
class RecordWalk:
    """Validates the records of one batch, fed in pieces, in constant memory.

    In a produced batch offsets are consecutive and there is a record; in a stored one they only
    increase (`consecutive=False`), because compaction leaves gaps. `InvalidRecordError` names the
    record and what is wrong: a varint too long, a length beyond its record, an offset delta out of
    order, bytes left over, fewer records than the header says. The batch's checksum, codec and
    flags are not looked at.
    """

    def __init__(self, batch: Batch, *, consecutive: bool = True) -> None: ...
    def feed(self, piece: Buffer) -> None: ...
    def finish(self) -> RecordStats: ...

def check_batches(
    data: Buffer, start: int = 0, end: int | None = None, *, consecutive: bool = True
) -> list[tuple[Batch, RecordStats | None]]:
    """Check batches from `start` to `end`: framing, checksum, and the records of uncompressed ones.

    A compressed batch comes without stats: decompress it through a `RecordWalk`. Unlike
    `read_batches`, a partial batch at the end is an error. `CorruptBatchError`,
    `InvalidRecordError`, of which `OffsetDeltaError` is one.
    """

def number_records(data: Buffer) -> bytearray | None:
    """Return the one uncompressed batch in `data` with the offset deltas 0, 1, 2, ...

    None if it is not one, or has no records in it: `check_batches` says what is wrong with it.
    """

def patch_offsets(
    data: bytearray | memoryview, batch: Batch, *, base_offset: int, leader_epoch: int
) -> None:
    """Write the two fields that the checksum does not cover, to `data` and to `batch`."""

def patch_timestamps(
    data: bytearray | memoryview, batch: Batch, *, max_timestamp: int, log_append_time: bool
) -> None:
    """Write the largest timestamp, its type and the new checksum, to `data` and to `batch`."""

@final
class Record:
    """One record as Python values."""

    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __init__(
        self,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[tuple[str, bytes | None]] = (),
    ) -> None: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]: ...

def decode_records(payload: Buffer, batch: Batch) -> list[Record]:
    """Decode an uncompressed payload (what follows the 61 header bytes) of a stored batch.

    A header key that is not UTF-8 has its bad bytes replaced. `InvalidRecordError`.
    """

@final
class BatchWriter:
    """Builds one v2 batch record by record.

    The base timestamp is the first record's unless it is given (compaction keeps a delete horizon
    in it). `ProtocolError` when a record does not follow the last one or the batch exceeds 2 GiB.
    """

    def __init__(self, *, base_offset: int = 0, base_timestamp: int | None = None) -> None: ...
    @property
    def record_count(self) -> int: ...
    @property
    def size(self) -> int: ...  # bytes of the batch as it stands, uncompressed, header included
    def reset(self, *, base_offset: int = 0, base_timestamp: int | None = None) -> None:
        """Begin another batch in the same memory."""
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
        last_offset: int | None = None,
    ) -> bytes:
        """Return the batch; the writer keeps its records until `reset`.

        `attributes` are those beside the codec. `last_offset` may lie behind the last record's:
        compaction keeps the range of a batch, even of an empty one.
        """
