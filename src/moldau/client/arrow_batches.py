"""Arrow data to batches for partitions."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from moldau._native.columns import open_arrow
from moldau.client.clock import loop_clock
from moldau.client.errors import RecordTooLargeError
from moldau.client.producer_settings import ProducerSettings
from moldau.records.batch import compressor

if TYPE_CHECKING:
    from moldau._native.columns import ArrowExporter, ArrowStream

ARROW_BATCH_BYTES: Final = 512 << 10
"""Rows at hand need not wait to become a large batch; the next is encoded while it is sent."""


def encode_rows(
    data: "ArrowExporter | ArrowStream",
    settings: ProducerSettings,
    partition_count: int,
    partition: int | None,
) -> Iterator[tuple[int | None, bytes]]:
    """Yield batches with their partitions, None for the rows that may go anywhere."""
    codec, compress = settings.codec, compressor(settings.codec, settings.level)
    bytes_max = max(settings.batch_size, min(ARROW_BATCH_BYTES, settings.max_request_size))
    now_ms = loop_clock().wall_ms()
    for rows in open_arrow(data):
        groups: list[tuple[int, bytes | None]] = [(-1 if partition is None else partition, None)]
        if partition is None and not settings.partitioner_ignore_keys:
            groups = rows.by_partition(partition_count)
        for place, chosen in groups:
            first, stop = 0, len(rows) if chosen is None else len(chosen) // 8
            while first < stop:
                batch, following = rows.encode(
                    chosen,
                    first,
                    timestamp=now_ms,
                    batch_bytes_max=bytes_max,
                    codec=codec,
                    compress=compress,
                )
                if following - first == 1 and len(batch) > settings.max_request_size:
                    raise RecordTooLargeError(
                        f"row {first}: a record of {len(batch)} bytes is larger than "
                        f"max.request.size={settings.max_request_size}: raise that, and "
                        "max.message.bytes of the topic"
                    )
                yield (None if place < 0 else place), batch
                first = following
