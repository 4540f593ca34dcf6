"""Writers of keys to a compacted topic, and the last read of them."""

from typing import ClassVar, Final

from moldau.client.consumer import AsyncConsumer
from moldau.client.errors import ClientError
from moldau.client.producer import AsyncProducer
from moldau.kernel.ids import TopicPartition
from moldau.simulation.workload.client import WorkloadClient
from moldau.simulation.workload.ledger import WorkloadLedger
from moldau.simulation.workload.producers import PRODUCER_QUICK
from moldau.simulation.workload.readers import CONSUMER_QUICK, POLL_MS

KEYS: Final = 6
TOMBSTONE_RATE: Final = 0.15


class KeyWriterClient(WorkloadClient):
    """Writes the keys of its own again and again, and deletes them."""

    kind: ClassVar[str] = "key"
    topic = "keys"

    async def work(self) -> None:
        """Write one key after the other."""
        place = TopicPartition(self.topic, 0)
        producer = AsyncProducer(self._servers, config=PRODUCER_QUICK)
        await producer.start()
        try:
            while not self.is_ending:
                key = f"{self.name}-{self.random.randrange(KEYS)}".encode()
                value = None if self.random.random() < TOMBSTONE_RATE else self.value()
                write = self.ledger.keys.begin_write(place, key, value)
                try:
                    delivery = await producer.send(self.topic, value, key, partition=0)
                    write.offset = (await delivery).offset
                except ClientError:
                    continue  # it may be stored
                self.acknowledge()
                await self.rest()
        finally:
            await producer.close(10)


async def check_keys(servers: str, ledger: WorkloadLedger) -> None:
    """Read all keys, and check that each has its last value."""
    async with AsyncConsumer(servers, config=CONSUMER_QUICK) as consumer:
        for place in ledger.keys.partitions:
            consumer.assign([place])
            end = (await consumer.end_offsets([place]))[place]
            found: list[tuple[int, bytes, bytes | None]] = []
            while await consumer.position(place) < end:
                for record in await consumer.poll(timeout_ms=POLL_MS):
                    assert record.key is not None, "its writers send keys"
                    found.append((record.offset, record.key, record.value))
            ledger.keys.check_end(place, found)
