"""Batches to and from Arrow columns, with their compression."""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from moldau._native.columns import Columns, decode_columns, encode_columns
from moldau._native.records import Batch
from moldau.records.batch import compressor
from moldau.records.compression import DECOMPRESSED_BYTES_MAX, Buffer, Codec, decompress

if TYPE_CHECKING:
    from moldau._native.columns import ArrowExporter


def read_columns(
    data: Buffer,
    batches: Iterable[Batch],
    *,
    start_offset: int = 0,
    headers: bool = True,
    bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> Columns:
    """Decode the records of these batches of `data`, control batches left out.

    Each batch is opened at most to `bytes_max`. `CompressionError`, `InvalidRecordError`.
    """
    return decode_columns(
        data,
        batches,
        partial(decompress, bytes_max=bytes_max),
        start_offset=start_offset,
        headers=headers,
    )


def build_batches(  # noqa: PLR0913 - a batch has that many fields
    columns: "ArrowExporter",
    *,
    batch_bytes_max: int = 1 << 20,
    codec: int = Codec.NONE,
    level: int | None = None,
    timestamp: int = -1,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> list[bytes]:
    """Build batches of an Arrow record batch; see `encode_columns` for the columns that count."""
    return encode_columns(
        columns,
        batch_bytes_max=batch_bytes_max,
        codec=codec,
        compress=compressor(codec, level),
        timestamp=timestamp,
        attributes=attributes,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )
