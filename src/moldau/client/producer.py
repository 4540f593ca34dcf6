"""The producer: sends records, in batches, and says where each was stored."""

import asyncio
import threading
import weakref
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from moldau._native.accumulator import Delivery, RecordMetadata
from moldau.client.admission import admit_batch, admit_record, count_partitions
from moldau.client.arrow_batches import encode_rows
from moldau.client.background import BackgroundLoop
from moldau.client.errors import BufferFullError, ClosedError
from moldau.client.producer_settings import load_producer_settings
from moldau.client.sender import Sender
from moldau.client.shared_cluster import SharedCluster
from moldau.client.transactional import AsyncTransactional, Transactional
from moldau.client.waiting import is_in
from moldau.protocol.schema import Buffer

if TYPE_CHECKING:
    from moldau._native.accumulator import HeaderRows
    from moldau._native.columns import ArrowExporter, ArrowStream

__all__ = ["AsyncProducer", "Delivery", "Producer", "RecordMetadata"]


LAST_WORDS_SECONDS: Final = 1.0
"""How long the end of a process waits until a producer has said what it had not sent."""


class AsyncProducer(AsyncTransactional):
    """Sends records from a loop.

        async with AsyncProducer("localhost:9092") as producer:
            delivery = await producer.send("clicks", b"value", b"key")
            print(await delivery)  # RecordMetadata(topic='clicks', partition=0, offset=0, ...)

    Settings have Kafka's names, with underscores as keywords or with dots in `config`; see
    `ProducerSettings`. Unless told otherwise, a record counts as delivered when all in-sync
    replicas have it, and none is stored twice.
    """

    def __init__(
        self,
        servers: str | None = None,
        *,
        config: Mapping[str, object] | None = None,
        cluster: SharedCluster | None = None,
        **settings: object,
    ) -> None:
        self.settings = load_producer_settings(servers, config, settings)
        self._cluster = cluster
        self._sender: Sender | None = None
        self._append: Callable[..., Delivery | None] = _not_started
        self._is_due: Callable[[], bool] = bool
        self._ended: Callable[[], object] = _nothing

    async def start(self, *, is_threaded: bool = False) -> None:
        """Find the cluster, or fail; `is_threaded`: records come from other threads."""
        sender = Sender(self.settings, is_threaded=is_threaded, cluster=self._cluster)
        try:
            await sender.start()
        except BaseException:
            await sender.cluster.close()
            raise
        self._sender = sender
        self._append = sender.accumulator.append
        self._is_due = sender.accumulator.is_due
        # The loop holds the sender, not the producer: who forgets the producer is told.
        watch = asyncio.get_running_loop().create_task(_watch(sender))
        self._ended = weakref.finalize(self, _forgotten, sender, watch)

    async def send(
        self,
        topic: str,
        value: Buffer | None,
        key: Buffer | None = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: "HeaderRows" = (),
    ) -> Delivery:
        """Take a record to send; wait only where there is no room for it.

        Records of a partition are stored in the order in which they were sent. Without a
        `partition`, the partitioner chooses; without a `timestamp_ms`, it is now.
        """
        delivery = self._append(topic, value, key, partition, timestamp_ms, headers)
        if delivery is None:
            sender = self._get_sender()
            return await admit_record(sender, topic, value, key, partition, timestamp_ms, headers)
        if self._is_due():
            await asyncio.sleep(0)  # who only sends would keep the loop from sending
        return delivery

    async def send_arrow(
        self, topic: str, data: "ArrowExporter | ArrowStream", *, partition: int | None = None
    ) -> list[Delivery]:
        """Send the rows of Arrow data: a table or record batch of pyarrow, polars, duckdb...

        Columns: value, and if there are key, timestamp, headers and partition. A row goes to
        `partition`, or where its own says, or by the hash of its key; rows with none of these go
        to one partition per batch. Returns a delivery for every batch, with the place of its first
        record. Rows at hand wait for nobody: `batch.size` and `linger.ms` do not matter.
        """
        count = await self.partitions_of(topic)
        sender = self._get_sender()
        deliveries = []
        for place, batch in encode_rows(data, self.settings, count, partition):
            if place is None:
                place = sender.accumulator.choose_partition(topic, len(batch))  # noqa: PLW2901
            deliveries.append(await admit_batch(sender, topic, place, batch))
            if self._is_due():
                await asyncio.sleep(0)
        return deliveries

    async def partitions_of(self, topic: str) -> int:
        """Return how many partitions a topic has."""
        deadline = self._get_sender().clock.monotonic() + self.settings.max_block_ms / 1000
        return await count_partitions(self._get_sender(), topic, deadline)

    async def flush(self) -> None:
        """Send what waits for more, and wait until all records so far are delivered or given up."""
        await self._get_sender().flush()

    async def close(self, timeout: float | None = None) -> None:
        """Deliver what there is, within so many seconds, and hang up.

        Without a timeout, `delivery.timeout.ms` is one. What is not delivered by then is given up,
        and an `UndeliveredWarning` says how much of which topics that was.
        """
        if self._sender is not None:
            try:
                await self._sender.close(timeout)
            finally:
                self._ended()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Who is cancelled does not want to wait for deliveries.
        await self.close(0 if kind is asyncio.CancelledError else None)

    def _get_sender(self) -> Sender:
        if self._sender is None:
            _not_started()
        assert self._sender is not None
        return self._sender


class Producer(Transactional):
    """Sends records from threads; delivery goes on behind them.

    with Producer("localhost:9092") as producer:
        delivery = producer.send("clicks", b"value", b"key")
        print(delivery.result())
    """

    def __init__(
        self,
        servers: str | None = None,
        *,
        config: Mapping[str, object] | None = None,
        cluster: SharedCluster | None = None,
        **settings: object,
    ) -> None:
        self._background = BackgroundLoop.shared()
        self._producer = AsyncProducer(servers, config=config, cluster=cluster, **settings)
        self._background.run(self._producer.start(is_threaded=True))
        self._append = self._producer._append  # noqa: SLF001 - its other face

    @property
    def _transactional(self) -> AsyncTransactional:
        return self._producer

    def send(
        self,
        topic: str,
        value: Buffer | None,
        key: Buffer | None = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: "HeaderRows" = (),
    ) -> Delivery:
        """Take a record to send; wait only where there is no room for it. See `AsyncProducer`."""
        delivery = self._append(topic, value, key, partition, timestamp_ms, headers)
        if delivery is not None:
            return delivery
        if is_in(self._background.loop):
            raise BufferFullError("there is no room for the record, and a callback cannot wait")
        producer = self._producer
        return self._background.run(
            producer.send(
                topic, value, key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
            )
        )

    def send_arrow(
        self, topic: str, data: "ArrowExporter | ArrowStream", *, partition: int | None = None
    ) -> list[Delivery]:
        """Send the rows of Arrow data; see `AsyncProducer.send_arrow`."""
        return self._background.run(self._producer.send_arrow(topic, data, partition=partition))

    def partitions_of(self, topic: str) -> int:
        """Return how many partitions a topic has."""
        return self._background.run(self._producer.partitions_of(topic))

    def flush(self) -> None:
        """Send what waits for more, and wait until all records so far are delivered or given up."""
        self._background.run(self._producer.flush())

    def close(self, timeout: float | None = None) -> None:
        """Deliver what there is, within so many seconds, and hang up; see `AsyncProducer.close`."""
        self._background.run(self._producer.close(timeout))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _nothing() -> None:
    """Do nothing."""


def _not_started(*_: object) -> None:
    raise ClosedError("the producer is not started: use it in `async with`")


async def _watch(sender: Sender) -> None:
    """Be there until the producer ends; whoever ends the loop first cancels this."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        sender.abandon(ClosedError("the loop ended before the record was delivered"))
        raise


def _forgotten(sender: Sender, watch: "asyncio.Task[None]") -> None:
    """Stop what nobody holds any more, in its loop if that runs; also when the process ends."""
    if is_in(sender.loop):
        watch.cancel()
    elif sender.loop.is_running():
        told = threading.Event()
        watch.add_done_callback(lambda _: told.set())
        sender.loop.call_soon_threadsafe(watch.cancel)
        told.wait(LAST_WORDS_SECONDS)
    else:
        sender.abandon(ClosedError("the loop ended before the record was delivered"))
