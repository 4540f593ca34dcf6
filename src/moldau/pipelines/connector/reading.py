"""What a task does: it reads a range of one partition's offsets, as Arrow batches for Spark."""

import time
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from moldau.client.errors import KafkaError, NoOffsetError
from moldau.client.sync_consumer import Consumer
from moldau.pipelines.connector.columns import Shaper
from moldau.pipelines.connector.kept_clients import kept_clients
from moldau.pipelines.connector.loss import cut, find_loss, report_loss
from moldau.pipelines.connector.planning import OffsetRange
from moldau.pipelines.connector.source_options import SourceOptions
from moldau.pipelines.errors import RetriableError
from moldau.protocol.errors import ErrorCode

POLL_MS: Final = 50
"""How long to wait for records before looking whether what is left has none."""


def read_range(wanted: OffsetRange, options: SourceOptions) -> Iterator[Any]:
    """Yield the records of a range as batches in Spark's own form.

    A range ends when the position is behind it: its last offsets may be a transaction's marker,
    aborted, or compacted away, so that no record has them.
    """
    shaper = Shaper(options.columns, options.decoding)
    with kept_clients(options.admin_config) as clients:
        consumer = clients.consumer(options.consumer_config)
        consumer.assign([wanted.key])
        left = _check(consumer, wanted, options)
        patience = _Patience(options.api_timeout_ms / 1000)
        while len(left):
            try:
                for batch in _poll(consumer):
                    whole = _before(batch, left.end)
                    if len(whole):
                        yield shaper.shape(whole)
                position = consumer.position(left.key)
            except (KafkaError, NoOffsetError) as error:
                if not _is_loss(error):
                    raise
                # The log's start has passed us, or the topic was created anew while we read.
                left = _check(consumer, left, options)
                continue
            patience.check(left, position)
            left = replace(left, start=min(position, left.end))


def _check(consumer: Consumer, wanted: OffsetRange, options: SourceOptions) -> OffsetRange:
    """Go to the start of what is there of a range, and return that."""
    key = wanted.key
    log_start = consumer.beginning_offsets([key])[key]
    log_end = consumer.end_offsets([key])[key]
    words = find_loss(wanted, log_start, log_end)
    if words is not None:
        report_loss(words, fails=options.fails_on_data_loss)
    there = cut(wanted, log_start, log_end)
    consumer.seek(key, there.start, until=there.end)
    return there


def _poll(consumer: Consumer) -> Iterator[Any]:
    records = consumer.poll_arrow(timeout_ms=POLL_MS)
    return iter(pa.RecordBatchReader.from_stream(records)) if len(records) else iter(())


def _before(batch: Any, end: int) -> Any:
    """Return the rows before an offset: they are in order."""
    offsets = batch.column("offset")
    if offsets[-1].as_py() < end:
        return batch
    return batch.slice(0, bisect_left(offsets, end, key=lambda offset: offset.as_py()))


def _is_loss(error: Exception) -> bool:
    return isinstance(error, NoOffsetError) or (
        isinstance(error, KafkaError) and error.code is ErrorCode.OFFSET_OUT_OF_RANGE
    )


class _Patience:
    """Gives up when nothing has come for as long as a call of the client may take."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds

    def check(self, left: OffsetRange, position: int) -> None:
        if position > left.start:
            self._deadline = time.monotonic() + self._seconds
        elif time.monotonic() > self._deadline:
            raise RetriableError(
                f"partition {left.key}: nothing came for {self._seconds:g} s at offset {position}, "
                f"and offsets up to {left.end - 1} are there: does its broker run?"
            )
