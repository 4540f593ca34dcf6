"""Batches to Arrow columns, with their compression."""

from collections.abc import Iterable
from functools import partial

from moldau._native.columns import Columns, decode_columns
from moldau._native.records import Batch
from moldau.kernel.disk import Buffer
from moldau.records.compression import DECOMPRESSED_BYTES_MAX, decompress


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
