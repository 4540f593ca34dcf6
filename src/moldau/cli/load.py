"""Producing and consuming as fast as it goes, and what that took."""

import asyncio
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count as numbers
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from moldau._native.accumulator import Delivery
    from moldau.client.consumer import AsyncConsumer
    from moldau.client.producer import AsyncProducer

MB: Final = 1 << 20
CONSUME_POLL_MS: Final = 100


class LoadWindow(NamedTuple):
    """What was done in some time."""

    records: int
    size_bytes: int
    seconds: float
    latencies_ms: "array[float]"
    """Of each record, in the order in which they were acknowledged; empty for a consumer."""

    @property
    def records_per_second(self) -> float:
        """The rate of records."""
        return self.records / self.seconds if self.seconds else 0.0

    @property
    def megabytes_per_second(self) -> float:
        """The rate of bytes, in units of 1024 * 1024."""
        return self.size_bytes / MB / self.seconds if self.seconds else 0.0

    @property
    def mean_ms(self) -> float:
        """The mean latency."""
        return sum(self.latencies_ms) / len(self.latencies_ms) if self.latencies_ms else 0.0

    @property
    def max_ms(self) -> float:
        """The largest latency."""
        return max(self.latencies_ms, default=0.0)

    def percentiles_ms(self, *fractions: float) -> list[float]:
        """Return the latencies that these fractions of the records did not exceed."""
        ordered = sorted(self.latencies_ms)
        return [
            ordered[min(len(ordered) - 1, int(len(ordered) * each))] if ordered else 0.0
            for each in fractions
        ]


class ProduceLoad:
    """Sends values to a topic, at a rate or as fast as it goes."""

    def __init__(self, report: Callable[[LoadWindow], None], report_seconds: float) -> None:
        self._report = report
        self._report_seconds = report_seconds
        self._latencies_ms = array("d")
        self._size_bytes = 0
        self._shown = 0
        self._shown_bytes = 0
        self._failure: Exception | None = None
        self._pending: deque[Delivery] = deque()

    async def run(
        self,
        producer: "AsyncProducer",
        topic: str,
        values: Iterator[bytes],
        count: int,
        rate: float | None,
    ) -> LoadWindow:
        """Send so many, and wait for all; raises if one could not be delivered."""
        began = shown = time.monotonic()
        for number in range(count):
            if self._failure is not None:
                raise self._failure
            if rate is not None:
                await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
            value = next(values)
            sent = time.monotonic()
            delivery = await producer.send(topic, value)
            delivery.add_done_callback(partial(self._delivered, sent, len(value)))
            self._hold(delivery)
            if sent - shown >= self._report_seconds:
                self._show(sent - shown)
                shown = sent
        await producer.flush()
        if self._failure is not None:
            raise self._failure
        seconds = time.monotonic() - began
        return LoadWindow(len(self._latencies_ms), self._size_bytes, seconds, self._latencies_ms)

    def _hold(self, delivery: "Delivery") -> None:
        """Keep it until it is done: a producer warns of failures that nobody asks about."""
        self._pending.append(delivery)
        while self._pending[0].done() and len(self._pending) > 1:
            self._pending.popleft()

    def _delivered(self, sent: float, size: int, delivery: "Delivery") -> None:
        if (error := delivery.exception()) is not None:
            # Raised where the next record is sent.
            self._failure = self._failure or error
            return
        self._latencies_ms.append((time.monotonic() - sent) * 1000)
        self._size_bytes += size

    def _show(self, seconds: float) -> None:
        latencies = self._latencies_ms[self._shown :]
        size = self._size_bytes - self._shown_bytes
        self._report(LoadWindow(len(latencies), size, seconds, latencies))
        self._shown += len(latencies)
        self._shown_bytes += size


def sized_values(size: int, limit: int | None = None) -> Iterator[bytes]:
    """Return different values of a size, for ever or so many; letters, so that they compress."""
    letters = bytes(65 + (7 * each) % 26 for each in range(size + 26))
    for number in numbers() if limit is None else range(limit):
        start = number % 26
        yield letters[start : start + size]


async def consume_load(
    consumer: "AsyncConsumer",
    count: int,
    timeout_ms: int,
    report: Callable[[LoadWindow], None],
    report_seconds: float,
) -> tuple[LoadWindow, bool]:
    """Take so many records; False beside the result if no more came in time."""
    records = size = shown_records = shown_size = 0
    began = shown = last = time.monotonic()
    while records < count:
        batch = await consumer.poll(CONSUME_POLL_MS)
        now = time.monotonic()
        if batch:
            last = now
        elif (now - last) * 1000 >= timeout_ms:
            return LoadWindow(records, size, last - began, array("d")), False
        records += len(batch)
        size += sum(len(each.key or b"") + len(each.value or b"") for each in batch)
        if now - shown >= report_seconds:
            report(LoadWindow(records - shown_records, size - shown_size, now - shown, array("d")))
            shown, shown_records, shown_size = now, records, size
    return LoadWindow(records, size, time.monotonic() - began, array("d")), True
