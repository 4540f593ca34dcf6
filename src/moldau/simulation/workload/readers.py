"""Readers of assigned partitions: what they see is in order, complete and committed."""

from collections.abc import Mapping
from random import Random
from typing import ClassVar, Final

from moldau.client.consumer import AsyncConsumer
from moldau.kernel.ids import TopicPartition
from moldau.simulation.laws.history import ReaderNote
from moldau.simulation.workload.client import QUICK, WorkloadClient
from moldau.simulation.workload.ledger import WorkloadLedger

CONSUMER_QUICK: Final[Mapping[str, object]] = {**QUICK, "auto.offset.reset": "earliest"}
POLL_MS: Final = 1_000
SEEK_RATE: Final = 0.02


class ReaderClient(WorkloadClient):
    """Reads all partitions of some topics, again and again from some place on."""

    kind: ClassVar[str] = "read"
    is_committed = False
    topics: Mapping[str, int] = {"events": 3, "payments": 2}
    """With their numbers of partitions."""

    def __init__(self, name: str, servers: str, ledger: WorkloadLedger, random: Random) -> None:
        super().__init__(name, servers, ledger, random)
        self._ends: dict[TopicPartition, int] = {}

    async def work(self) -> None:
        """Poll, and sometimes seek."""
        consumer = AsyncConsumer(
            self._servers,
            config=CONSUMER_QUICK,
            isolation_level="read_committed" if self.is_committed else "read_uncommitted",
            fetch_min_bytes=self.random.choice((1, 200)),
            max_poll_records=self.random.choice((10, 500)),
        )
        await consumer.start()
        try:
            note = self.ledger.history.reader(self.writer, is_committed=self.is_committed)
            places = [
                TopicPartition(topic, index)
                for topic, count in self.topics.items()
                for index in range(count)
            ]
            consumer.assign(places)
            for place in places:
                self._seek(consumer, note, place, self._ends.get(place, 0))
            while not self.is_ending:
                await self._poll(consumer, note)
                if self.random.random() < SEEK_RATE:
                    place = self.random.choice(places)
                    end = self._ends.get(place, 0)
                    self._seek(consumer, note, place, self.random.randint(end // 2, end))
        finally:
            await consumer.close()

    async def _poll(self, consumer: AsyncConsumer, note: ReaderNote) -> None:
        records = await consumer.poll(timeout_ms=POLL_MS)
        for record in records:
            place = TopicPartition(record.topic, record.partition)
            assert record.value is not None, "no client sends a tombstone here"
            note.polled(place, record.offset, record.value)
            self._ends[place] = record.offset + 1
        self.acknowledge(bool(records))

    def _seek(
        self, consumer: AsyncConsumer, note: ReaderNote, place: TopicPartition, offset: int
    ) -> None:
        consumer.seek(place, offset)
        note.seek(place, offset)


class CommittedReaderClient(ReaderClient):
    """Reads only what is committed."""

    is_committed = True
    topics: Mapping[str, int] = {"events": 3, "payments": 2, "flour": 2}
