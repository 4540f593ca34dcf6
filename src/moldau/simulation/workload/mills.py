"""Mills: what they read of one topic they write to another, once each, by transactions."""

from collections.abc import Iterable
from random import Random
from typing import TYPE_CHECKING, ClassVar, Final

from moldau._native.fetched import Record
from moldau.client.admin import AsyncAdmin
from moldau.client.consumer import AsyncConsumer
from moldau.client.errors import ClientError, KafkaError
from moldau.client.producer import AsyncProducer
from moldau.kernel.ids import TopicPartition
from moldau.simulation.laws.history import OperationEnd, TransactionNote
from moldau.simulation.laws.transformed import origin
from moldau.simulation.workload.client import QUICK
from moldau.simulation.workload.ledger import NO_OFFSET, WorkloadLedger
from moldau.simulation.workload.readers import CONSUMER_QUICK, POLL_MS
from moldau.simulation.workload.transactions import SentRecords, TransactionClient

if TYPE_CHECKING:
    from moldau.simulation.laws.registers import WriteNote

MILLED_MAX: Final = 20


class MillClient(TransactionClient):
    """Consumes, transforms and produces, with its offsets in the same transactions."""

    kind: ClassVar[str] = "mill"
    topic = "flour"
    partitions = 2
    sources = tuple(TopicPartition("payments", index) for index in range(2))
    group = "mill"

    def __init__(self, name: str, servers: str, ledger: WorkloadLedger, random: Random) -> None:
        super().__init__(name, servers, ledger, random)
        self._next: dict[TopicPartition, int] = {}
        self._records: list[Record] = []
        self._writes: dict[TopicPartition, WriteNote[int]] = {}

    async def work(self) -> None:
        """Read some records, and write what is made of them."""
        consumer = AsyncConsumer(
            self._servers,
            config=CONSUMER_QUICK,
            isolation_level="read_committed",
            max_poll_records=MILLED_MAX,
        )
        async with self.producer() as producer, consumer:
            await self.take_over(producer)
            # Only now nothing of the process before can still be committed.
            self._next = await self._committed()
            consumer.assign(self.sources)
            self._rewind(consumer)
            while not self.is_ending:
                self._records = await consumer.poll(timeout_ms=POLL_MS)
                if self._records and await self._mill(producer) is OperationEnd.FAILED:
                    self._rewind(consumer)
                await self.rest()

    async def _committed(self) -> dict[TopicPartition, int]:
        begun = self.ledger.now
        async with AsyncAdmin(self._servers, config=QUICK) as admin:
            found = await admin.list_group_offsets(self.group, self.sources, require_stable=True)
        offsets: dict[TopicPartition, int] = {}
        for place in self.sources:
            committed = found.get(place)
            if isinstance(committed, KafkaError):
                raise committed
            offset = NO_OFFSET if committed is None else committed.offset
            self.ledger.offsets.read((self.group, place), offset, begun)
            offsets[place] = max(0, offset)
        return offsets

    def _rewind(self, consumer: AsyncConsumer) -> None:
        for place, offset in self._next.items():
            consumer.seek(place, offset)

    async def _mill(self, producer: AsyncProducer) -> OperationEnd:
        """Make a transaction of what was read."""
        self._writes = {}
        transaction = None
        try:
            outcome = await self.transact(producer)
        except ClientError:
            transaction = self._last
            assert transaction is not None, "it has begun"
            self._settle(transaction.outcome)
            raise
        self._settle(outcome)
        if outcome is OperationEnd.OK:
            self._next |= _ends(self._records)
        return outcome

    async def fill(self, producer: AsyncProducer, note: TransactionNote, sent: SentRecords) -> None:
        """Send a record for each that was read, and their offsets."""
        for record in self._records:
            source = TopicPartition(record.topic, record.partition)
            place = TopicPartition(self.topic, self.random.randrange(self.partitions))
            value = self.value() + origin(source, record.offset)
            sent.append(await self.send(producer, place, value, note))
        ends = _ends(self._records)
        for source, offset in ends.items():
            self._writes[source] = self.ledger.offsets.begin_write(
                (self.group, source), offset, self.ledger.now
            )
        await producer.send_offsets(
            {(*source,): offset for source, offset in ends.items()}, self.group
        )

    def _settle(self, outcome: OperationEnd) -> None:
        for source, write in self._writes.items():
            key = self.group, source
            if outcome is OperationEnd.OK:
                self.ledger.offsets.end_write(key, write, self.ledger.now)
            elif outcome is OperationEnd.FAILED:
                self.ledger.offsets.refuse_write(key, write)


def _ends(records: Iterable[Record]) -> dict[TopicPartition, int]:
    return {TopicPartition(each.topic, each.partition): each.offset + 1 for each in records}
