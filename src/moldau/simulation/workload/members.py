"""Members of consumer groups, of the classic and of the consumer protocol."""

from collections.abc import Iterable
from random import Random
from typing import ClassVar, Final

from moldau.client.consumer import AsyncConsumer
from moldau.client.errors import KafkaError
from moldau.kernel.ids import TopicPartition
from moldau.simulation.laws.history import ReaderNote
from moldau.simulation.workload.client import WorkloadClient
from moldau.simulation.workload.ledger import NO_OFFSET, WorkloadLedger
from moldau.simulation.workload.readers import CONSUMER_QUICK, POLL_MS

COMMIT_RATE: Final = 0.6
LOOK_RATE: Final = 0.15
LEAVE_RATE: Final = 0.01
STRATEGIES: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")


class MemberClient(WorkloadClient):
    """Shares a topic with the other members of its group, and commits how far it has read."""

    kind: ClassVar[str] = "group"
    topic = "events"
    group = "classic"
    strategy = "cooperative-sticky"

    def __init__(self, name: str, servers: str, ledger: WorkloadLedger, random: Random) -> None:
        super().__init__(name, servers, ledger, random)
        self._read: dict[TopicPartition, int] = {}

    def consumer(self) -> AsyncConsumer:
        """Return a consumer of this group."""
        return AsyncConsumer(
            self._servers,
            config=CONSUMER_QUICK,
            group_id=self.group,
            enable_auto_commit=False,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=1_000,
            partition_assignment_strategy=self.strategy,
        )

    async def work(self) -> None:
        """Join, read and commit; sometimes leave."""
        note = self.ledger.history.reader(self.writer, is_committed=False)
        self._read = {}

        def give_up(places: Iterable[TopicPartition]) -> None:
            for place in sorted(places):
                note.leave(place)
                self._read.pop(place, None)

        async with self.consumer() as consumer:
            consumer.subscribe(self.topic, on_assigned=give_up, on_revoked=give_up, on_lost=give_up)
            while not self.is_ending and self.random.random() >= LEAVE_RATE:
                await self._poll(consumer, note)
                if self._read and self.random.random() < COMMIT_RATE:
                    await self._commit(consumer)
                if self.random.random() < LOOK_RATE:
                    await self._look(consumer)
                await self.rest()

    async def _poll(self, consumer: AsyncConsumer, note: ReaderNote) -> None:
        records = await consumer.poll(timeout_ms=POLL_MS)
        self.acknowledge(bool(records))
        for record in records:
            place = TopicPartition(record.topic, record.partition)
            assert record.value is not None, "no client sends a tombstone here"
            if place not in self._read:
                note.seek(place, record.offset)  # where the group has committed
            note.polled(place, record.offset, record.value)
            self._read[place] = record.offset + 1

    async def _commit(self, consumer: AsyncConsumer) -> None:
        offsets = dict(sorted(self._read.items()))
        registers, begun = self.ledger.offsets, self.ledger.now
        writes = {
            place: registers.begin_write((self.group, place), offset, begun)
            for place, offset in offsets.items()
        }
        try:
            await consumer.commit({(*place,): offset for place, offset in offsets.items()})
        except KafkaError:
            return  # the group has gone on; an attempt that was not answered may have been taken
        for place, write in writes.items():
            registers.end_write((self.group, place), write, self.ledger.now)
        self.acknowledge()

    async def _look(self, consumer: AsyncConsumer) -> None:
        places = sorted(consumer.assignment)
        if not places:
            return
        begun = self.ledger.now
        try:
            found = await consumer.committed(places)
        except KafkaError:
            return
        for place in places:
            committed = found.get(place)
            offset = NO_OFFSET if committed is None else committed.offset
            self.ledger.offsets.read((self.group, place), offset, begun)
        self.acknowledge()


class ConsumerMemberClient(MemberClient):
    """A member of a group whose coordinator shares out (KIP-848)."""

    group = "consumer"

    def consumer(self) -> AsyncConsumer:
        """Return a consumer of this group."""
        return AsyncConsumer(
            self._servers,
            config=CONSUMER_QUICK,
            group_id=self.group,
            group_protocol="consumer",
            enable_auto_commit=False,
        )
