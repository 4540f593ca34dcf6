"""Idempotent producers: each record is stored once, and in order."""

from collections.abc import Mapping
from typing import ClassVar, Final

from moldau.client.errors import ClientError
from moldau.client.producer import AsyncProducer, Delivery
from moldau.kernel.ids import TopicPartition
from moldau.simulation.laws.history import OperationEnd, SendNote, TransactionNote
from moldau.simulation.workload.client import QUICK, WorkloadClient

BURST_MAX: Final = 8
PRODUCER_QUICK: Final[Mapping[str, object]] = {
    **QUICK,
    "delivery.timeout.ms": 15_000,
    "max.block.ms": 10_000,
}


class SendingClient(WorkloadClient):
    """Sends records, and notes what becomes of each."""

    async def send(
        self,
        producer: AsyncProducer,
        place: TopicPartition,
        value: bytes,
        transaction: TransactionNote | None = None,
    ) -> tuple[SendNote, Delivery]:
        """Send a record; return it with what becomes of it."""
        history = self.ledger.history
        note = history.begin_send(
            self.writer, place, value, is_idempotent=True, transaction=transaction
        )
        try:
            return note, await producer.send(place.topic, value, partition=place.partition)
        except ClientError:
            history.end_send(note, OperationEnd.FAILED)  # the producer has not taken it
            raise

    async def settle(self, note: SendNote, delivery: Delivery) -> bool:
        """Wait until a record is delivered or given up; whether it is delivered."""
        try:
            metadata = await delivery
        except ClientError:
            # It was sent, perhaps more than once, and any of these may be stored.
            self.ledger.history.end_send(note, OperationEnd.UNKNOWN)
            return False
        self.ledger.history.end_send(note, OperationEnd.OK, metadata.offset)
        return True


class ProducerClient(SendingClient):
    """Sends bursts of records to the partitions of a topic."""

    kind: ClassVar[str] = "send"
    topic = "events"
    partitions = 3

    async def work(self) -> None:
        """Send bursts."""
        linger_ms = self.random.choice((0, 5))
        producer = AsyncProducer(self._servers, config=PRODUCER_QUICK, linger_ms=linger_ms)
        await producer.start()
        try:
            while not self.is_ending:
                await self._burst(producer)
                await self.rest()
        finally:
            await producer.close(10)

    async def _burst(self, producer: AsyncProducer) -> None:
        sent: list[tuple[SendNote, Delivery]] = []
        try:
            for _ in range(self.random.randint(1, BURST_MAX)):
                send = await self.send(producer, self.place(), self.value())
                sent.append(send)
        finally:
            self.acknowledge(sum([await self.settle(*each) for each in sent]))

    def place(self) -> TopicPartition:
        """Choose where a record goes."""
        return TopicPartition(self.topic, self.random.randrange(self.partitions))


class QueueProducerClient(ProducerClient):
    """Sends the records that share groups work on."""

    topic = "queue"
    partitions = 2


class ShortLivedProducerClient(ProducerClient):
    """Sends records that are deleted: by an admin, and by retention."""

    places = (TopicPartition("pruned", 0), TopicPartition("aged", 0))

    def place(self) -> TopicPartition:
        """Choose one of both."""
        return self.random.choice(self.places)
