"""Transactional producers: each transaction is visible in whole or not at all."""

from collections.abc import Iterable
from random import Random
from typing import ClassVar, Final

from moldau.client.errors import ClientError
from moldau.client.producer import AsyncProducer, Delivery
from moldau.kernel.ids import TopicPartition
from moldau.simulation.laws.history import OperationEnd, SendNote, TransactionNote
from moldau.simulation.workload.ledger import WorkloadLedger
from moldau.simulation.workload.producers import BURST_MAX, PRODUCER_QUICK, SendingClient

ABORT_RATE: Final = 0.25
TRANSACTION_TIMEOUT_MS: Final = 8_000

SentRecords = list[tuple[SendNote, Delivery]]


class TransactionClient(SendingClient):
    """Sends to several partitions in transactions, and aborts some of them."""

    kind: ClassVar[str] = "transaction"
    topic = "payments"
    partitions = 2

    def __init__(self, name: str, servers: str, ledger: WorkloadLedger, random: Random) -> None:
        super().__init__(name, servers, ledger, random)
        self._last: TransactionNote | None = None

    async def work(self) -> None:
        """Make transactions."""
        async with self.producer() as producer:
            await self.take_over(producer)
            while not self.is_ending:
                await self.transact(producer)
                await self.rest()

    def producer(self) -> AsyncProducer:
        """Return a producer with this client's transactional id."""
        return AsyncProducer(
            self._servers,
            config=PRODUCER_QUICK,
            transactional_id=self.name,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
        )

    async def take_over(self, producer: AsyncProducer) -> None:
        """Fence the producer before; its transaction is aborted if no commit was asked for."""
        last, self._last = self._last, None
        if last is not None and last.outcome is OperationEnd.PENDING and not last.is_ending:
            self.ledger.history.end_transaction(last, OperationEnd.FAILED)
        await producer.init_transactions()

    async def transact(self, producer: AsyncProducer) -> OperationEnd:
        """Make one transaction; it is committed (OK) or aborted (FAILED), or an error is raised."""
        self._last = note = self.ledger.history.begin_transaction(self.writer)
        sent: SentRecords = []
        try:
            await producer.begin_transaction()
            await self.fill(producer, note, sent)
            if self.random.random() < ABORT_RATE:
                await producer.abort_transaction()
                outcome = OperationEnd.FAILED
            else:
                note.is_ending = True
                await producer.commit_transaction()
                outcome = OperationEnd.OK
        except ClientError:
            self._end(note, sent, OperationEnd.UNKNOWN if note.is_ending else OperationEnd.FAILED)
            raise
        self._end(note, sent, outcome)
        self.acknowledge()
        return outcome

    async def fill(self, producer: AsyncProducer, note: TransactionNote, sent: SentRecords) -> None:
        """Send what the transaction has."""
        for _ in range(self.random.randint(1, BURST_MAX)):
            place = TopicPartition(self.topic, self.random.randrange(self.partitions))
            sent.append(await self.send(producer, place, self.value(), note))

    def _end(
        self,
        note: TransactionNote,
        sent: Iterable[tuple[SendNote, Delivery]],
        outcome: OperationEnd,
    ) -> None:
        history = self.ledger.history
        for send, delivery in sent:
            if delivery.done() and delivery.exception() is None:
                history.end_send(send, OperationEnd.OK, delivery.metadata().offset)
                self.ledger.acknowledged["send"] += 1
            else:
                history.end_send(send, OperationEnd.UNKNOWN)
        history.end_transaction(note, outcome)
