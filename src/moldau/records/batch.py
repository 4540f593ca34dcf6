"""Record batches (format 2) with their compression: build, read, validate.

The kernel (moldau._native.records) knows a batch's bytes but no codec; here the two meet.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain

from moldau._native.records import (
    Batch,
    BatchWriter,
    Record,
    RecordStats,
    RecordWalk,
    check_batches,
    decode_records,
)
from moldau.kernel.disk import Buffer
from moldau.kernel.errors import InvalidRecordError
from moldau.records.compression import (
    DECOMPRESSED_BYTES_MAX,
    Codec,
    compress,
    decompress,
    decompress_pieces,
)

HEADER_BYTES = 61

# The attributes beside the codec.
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40


def build_batch(
    records: Iterable[Record],
    *,
    codec: int = Codec.NONE,
    level: int | None = None,
    attributes: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """Build one batch of `records`, whose offsets increase.

    With LOG_APPEND_TIME among the attributes all records have the time of the latest.
    """
    rest = iter(records)
    first = next(rest, None)
    if first is None:
        raise ValueError("a batch has at least one record")
    writer = BatchWriter(base_offset=first.offset)
    for record in chain([first], rest):
        writer.append_at(record.offset, record.timestamp, record.key, record.value, record.headers)
    return writer.finish(
        codec=codec,
        compress=compressor(codec, level),
        attributes=attributes,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )


def compressor(codec: int, level: int | None) -> Callable[[memoryview], bytes] | None:
    """Return what the kernel is to compress a payload with, None for no compression."""
    if codec != Codec.NONE:
        return partial(compress, codec, level=level)
    if level is not None:
        raise ValueError("no compression has no levels")
    return None


def payload_of(data: Buffer, batch: Batch) -> memoryview:
    """Return what follows the header of `batch` in the `data` that it was read from."""
    return memoryview(data)[batch.position + HEADER_BYTES : batch.position + batch.size]


def read_records(
    data: Buffer, batch: Batch, *, bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> list[Record]:
    """Decode the records of a stored or fetched batch.

    `CompressionError` and `InvalidRecordError` tell what is wrong with them.
    """
    payload: Buffer = payload_of(data, batch)
    # Compaction may leave a batch without records, and then without a payload to open.
    if batch.codec != Codec.NONE and batch.record_count:
        payload = decompress(batch.codec, payload, bytes_max=bytes_max)
    return decode_records(payload, batch)


def validate(
    data: Buffer,
    start: int = 0,
    end: int | None = None,
    *,
    bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> list[tuple[Batch, RecordStats]]:
    """Check what a client wants to append: whole batches with every record in order.

    Compressed batches are opened piece by piece, each at most to `bytes_max`. `CorruptBatchError`,
    `CompressionError` or `InvalidRecordError` for the first fault.
    """
    validated = []
    for batch, stats in check_batches(data, start, end):
        if stats is None:
            walk = RecordWalk(batch)
            for piece in decompress_pieces(
                batch.codec, payload_of(data, batch), bytes_max=bytes_max
            ):
                walk.feed(piece)
            stats = walk.finish()  # noqa: PLW2901
        validated.append((batch, stats))
    if not validated:
        raise InvalidRecordError("there is no batch")
    return validated
