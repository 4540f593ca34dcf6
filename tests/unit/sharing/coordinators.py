"""A share coordinator without a broker: what it decides is recorded, and replayed at once."""

from collections.abc import Callable

from moldau.coordination.command import Ticket
from moldau.coordination.decision import Decision
from moldau.coordination.refusal import Refusal
from moldau.coordination.stored_record import StoredRecord, decode_record, record_types
from moldau.kernel.clock import Instant
from moldau.kernel.ids import Offset, ProducerId
from moldau.metadata.settings.broker import BrokerSettings
from moldau.protocol.stored import share_group_state
from moldau.sharing.machine import ShareMachine

TYPES = record_types(share_group_state)


class Context:
    """A cluster in which every partition is."""

    def __init__(self, **settings: str) -> None:
        texts = {name.replace("_", "."): value for name, value in settings.items()}
        self.settings = BrokerSettings.parse({"node.id": "1", **texts})
        self.is_gone: Callable[[bytes, int], bool] = lambda topic_id, partition: False  # noqa: ARG005

    def has_partition(self, topic_id: bytes, partition: int) -> bool:
        return not self.is_gone(topic_id, partition)


class Coordinator:
    """One machine over a log of encoded records."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.log: list[tuple[bytes, bytes | None]] = []
        self.log_start = 0
        self.machine = ShareMachine(context)

    def ask(self, command: object, now: Instant) -> object:
        """Return the answer, or the refusal."""
        try:
            decision = self.machine.decide(command, Ticket(0), now)
        except Refusal as refusal:
            return refusal
        self.record(decision)
        return decision.response

    def record(self, decision: Decision) -> None:
        """Append, and replay."""
        for record in decision.records:
            self.append(record)

    def append(self, record: StoredRecord) -> None:
        self.log.append(record.encode())
        self._replay(len(self.log) - 1)

    def _replay(self, offset: int) -> None:
        decoded = decode_record(TYPES, *self.log[offset])
        assert decoded is not None
        self.machine.replay(Offset(offset), ProducerId(-1), *decoded)

    def restart(self) -> None:
        """Forget everything but the log."""
        self.machine = ShareMachine(self.context)
        for offset in range(self.log_start, len(self.log)):
            self._replay(offset)
