"""Members of share groups, with explicit and implicit acknowledgement."""

from collections.abc import Callable
from random import Random
from typing import ClassVar, Final

from moldau.client.acknowledgements import Acknowledged, AcknowledgeType
from moldau.client.share_consumer import AsyncShareConsumer
from moldau.kernel.ids import TopicPartition
from moldau.simulation.laws.delivery import SharedRecord
from moldau.simulation.workload.client import QUICK, WorkloadClient
from moldau.simulation.workload.ledger import WorkloadLedger
from moldau.simulation.workload.readers import POLL_MS

KINDS: Final = (AcknowledgeType.ACCEPT,) * 8 + (AcknowledgeType.RELEASE, AcknowledgeType.REJECT)
LEAVE_RATE: Final = 0.01
SURE: Final = 0.9
"""How much of a lock's time counts: clocks differ."""


class SharerClient(WorkloadClient):
    """Works on a share group's records, and says of each what became of it."""

    kind: ClassVar[str] = "share"
    topic = "queue"
    group = "sharers"
    mode = "explicit"

    def __init__(self, name: str, servers: str, ledger: WorkloadLedger, random: Random) -> None:
        super().__init__(name, servers, ledger, random)
        self._said: dict[SharedRecord, AcknowledgeType] = {}

    async def work(self) -> None:
        """Poll and acknowledge; sometimes leave."""
        self._said = {}
        consumer = AsyncShareConsumer(
            self._servers,
            config=QUICK,
            group_id=self.group,
            share_acknowledgement_mode=self.mode,
            max_poll_records=1_000_000,  # so that each poll hands out all that a fetch has brought
        )
        consumer.set_acknowledgement_callback(self._acknowledged)
        async with consumer:
            consumer.subscribe(self.topic)
            # The fetch that brings records leaves after the poll before has returned some.
            asked = self.ledger.now
            while not self.is_ending and self.random.random() >= LEAVE_RATE:
                if await self._poll(consumer, asked):
                    await self.rest()
                    asked = self.ledger.now

    async def _poll(self, consumer: AsyncShareConsumer, asked: float) -> bool:
        records = await consumer.poll(timeout_ms=POLL_MS)
        if not records:
            return False
        is_held, now = self._connection(), self.ledger.now
        lock_seconds = (consumer.acquisition_lock_timeout_ms or 0) / 1000 * SURE
        for record in records:
            shared = SharedRecord(
                self.group, TopicPartition(record.topic, record.partition), record.offset
            )
            self.ledger.deliveries.deliver(
                shared,
                self.writer,
                asked=asked,
                now=now,
                lock_seconds=lock_seconds,
                is_held=is_held,
            )
            self._said[shared] = AcknowledgeType.ACCEPT
            if self.mode == "explicit":
                self._said[shared] = kind = self.random.choice(KINDS)
                consumer.acknowledge(record, kind)
                if kind is AcknowledgeType.RELEASE:
                    self.ledger.deliveries.let_go(shared)
        if self.mode == "explicit":
            await consumer.commit()
        return True

    def _acknowledged(self, done: Acknowledged) -> None:
        accepted = 0
        for offset in done.offsets:
            shared = SharedRecord(self.group, done.partition, offset)
            if done.error is None and self._said.pop(shared, None) is AcknowledgeType.ACCEPT:
                self.ledger.deliveries.accept(shared, self.writer)
                accepted += 1
            else:
                self.ledger.deliveries.let_go(shared)
        self.acknowledge(accepted)

    def _connection(self) -> Callable[[], bool]:
        """Return what tells whether all connections of now are still there, and so the locks."""
        process = self.process
        assert process is not None, "it runs"
        sockets = tuple(process.sockets)
        return lambda: (
            process.is_alive
            and all(
                socket in process.sockets
                and not (socket.peer.is_closed or socket.peer.is_forgotten or socket.peer.error)
                for socket in sockets
            )
        )


class ImplicitSharerClient(SharerClient):
    """A member whose next poll accepts what the last one returned."""

    mode = "implicit"
