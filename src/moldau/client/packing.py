"""Batches to bytes: compressed, stamped with who sends them, and halved where too large."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from moldau._native.records import Record, read_batches
from moldau.client.outbox_events import NOBODY, OutgoingBatch, Request
from moldau.client.producer_settings import ProducerSettings
from moldau.records.batch import build_batch, compressor, read_records

if TYPE_CHECKING:
    from moldau._native.accumulator import PendingBatch


class Packing:
    """How a producer's batches are compressed."""

    def __init__(self, settings: ProducerSettings) -> None:
        self._codec = settings.codec
        self._level = settings.level
        self._compress = compressor(settings.codec, settings.level)
        self._is_transactional = settings.transactional_id is not None

    def encode(self, request: Request) -> Sequence[bytes]:
        """Return the bytes of a request's batches."""
        encoded = []
        for shipment in request.shipments:
            batch = cast("PendingBatch", shipment.batch)
            batch.encode(self._codec, self._compress)
            sequence = -1 if shipment.identity is NOBODY else shipment.sequence
            encoded.append(batch.stamp(*shipment.identity, sequence, self._is_transactional))
        return encoded

    def split(self, batch: OutgoingBatch) -> Sequence[OutgoingBatch]:
        """Cut a batch that was sent in two, each with half of its records."""
        pending = cast("PendingBatch", batch)
        data = pending.stamp(*NOBODY, -1)
        [header] = read_batches(data)
        records = read_records(data, header)
        middle = len(records) // 2
        return pending.split(self._build(records[:middle]), self._build(records[middle:]))

    def _build(self, records: Sequence[Record]) -> bytes:
        first = records[0].offset
        moved = (
            Record(each.offset - first, each.timestamp, each.key, each.value, each.headers)
            for each in records
        )
        return build_batch(moved, codec=self._codec, level=self._level)
