"""A topic's records as Arrow columns, read by the client."""

import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from moldau.client.sync_consumer import Consumer
from moldau.pipelines.errors import RetriableError
from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.local.refusals import GoesToSpark
from moldau.pipelines.sql.topic_spans import OffsetSpan

POLL_MS: Final = 50
"""How long to wait for records before looking whether what is left has none."""
PATIENCE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class QuestionLimits:
    """What is small enough to be answered here."""

    records_max: int = 5_000_000
    bytes_max: int = 2 << 30
    """Of keys and values, as they are read."""
    memory_bytes_max: int = 2 << 30
    """Of what the engine makes of them."""


class Reading:
    """Counts what is read for one question, of all its topics."""

    def __init__(self, limits: QuestionLimits, asker: Asker | None = None) -> None:
        self._limits = limits
        self._asker = asker or Asker()
        self._total = 0
        self._done = 0
        self._bytes = 0

    @property
    def total(self) -> int:
        """How many offsets there are to read."""
        return self._total

    def expect(self, topic: str, spans: Sequence[OffsetSpan]) -> None:
        """Count what is to be read; `GoesToSpark` if it is too much."""
        self._total += sum(map(len, spans))
        if self._total > self._limits.records_max:
            raise GoesToSpark(
                f"large: {self._total:,} records up to and with topic {topic}, and at most "
                f"{self._limits.records_max:,} are read here"
            )

    def came(self, offsets: int, data_bytes: int) -> None:
        """Count what was read; `CancelledError` if nobody asks any more."""
        self._asker.check()
        self._done += offsets
        self._bytes += data_bytes
        if self._bytes > self._limits.bytes_max:
            raise GoesToSpark(
                f"large: more than {self._limits.bytes_max >> 20:,} MB, which is as much as is "
                "read here"
            )
        self._asker.progress(self._done, self._total)


def read_records(
    consumer: Consumer, spans: Sequence[OffsetSpan], columns: Sequence[str], reading: Reading
) -> Iterator[pa.RecordBatch]:
    """Yield the records of spans whose partitions are assigned, with these columns."""
    left = {each.key: each for each in spans if len(each)}
    at = {key: each.start for key, each in left.items()}
    # Nothing is left over of an earlier read, such as that it was paused at the end.
    consumer.assign([])
    consumer.assign(left)
    for key, span in left.items():
        consumer.seek(key, span.start)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while left:
        came = set()
        for batch in _poll(consumer):
            key = _place(batch)
            if key not in left:
                continue
            came.add(key)
            part = _before(batch, left[key].end)
            if len(part):
                kept = part.select(list(columns))
                reading.came(0, kept.nbytes)
                yield kept
        # Markers and aborted records have offsets, too: only the position tells the end.
        for key in sorted(came or left):
            position = min(consumer.position(key), left[key].end)
            reading.came(position - at[key], 0)
            if position > at[key]:
                deadline = time.monotonic() + PATIENCE_SECONDS
            at[key] = position
            if position >= left[key].end:
                del left[key]
                consumer.pause(key)
        if left and time.monotonic() > deadline:
            key = min(left)
            raise RetriableError(
                f"partition {key}: nothing came for {PATIENCE_SECONDS:g} s at offset {at[key]}, "
                f"and offsets up to {left[key].end - 1} are there: does its broker run?"
            )


def _poll(consumer: Consumer) -> Iterator[Any]:
    records = consumer.poll_arrow(timeout_ms=POLL_MS)
    return iter(pa.RecordBatchReader.from_stream(records)) if len(records) else iter(())


def _place(batch: Any) -> Any:
    # A batch is of one partition.
    return (batch.column("topic")[0].as_py(), batch.column("partition")[0].as_py())


def _before(batch: Any, end: int) -> Any:
    offsets = batch.column("offset")
    if offsets[-1].as_py() < end:
        return batch
    return batch.slice(0, bisect_left(offsets, end, key=lambda offset: offset.as_py()))
