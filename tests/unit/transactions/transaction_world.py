"""A coordinator's machine for transactions without a broker: its log is a list."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from moldau.coordination.command import Ticket
from moldau.coordination.decision import CancelTimer, Decision, Effect, Reply, SetTimer
from moldau.coordination.producer import NO_PRODUCER, ProducerIdentity
from moldau.coordination.refusal import Refusal
from moldau.coordination.stored_record import StoredRecord, decode_record, record_types
from moldau.kernel.clock import Instant
from moldau.kernel.ids import Offset, ProducerEpoch, ProducerId, TopicPartition
from moldau.metadata.settings.effective import BrokerLayers, broker_settings
from moldau.protocol.stored import transaction_state
from moldau.transactions.commands import (
    AddPartitions,
    CompleteTransaction,
    EndTransaction,
    InitProducer,
    ProducerIdNeeded,
    Submit,
    VerifyPartitions,
    WriteMarkers,
)
from moldau.transactions.machine import TransactionMachine
from moldau.transactions.state import PREVIOUS, TransactionState
from moldau.transactions.transaction import Transaction

TYPES = record_types(transaction_state)
START_MS = 1_800_000_000_000
ID = "till"
A = TopicPartition("a", 0)
B = TopicPartition("b", 1)

Then = Callable[[Any], None]


class TransactionWorld:
    """One partition of __transaction_state: decided, replayed, and answered when committed."""

    def __init__(self, version: int = 2, **settings: str) -> None:
        dotted = {name.replace("_", "."): value for name, value in settings.items()}
        self.context = SimpleNamespace(
            settings=broker_settings(BrokerLayers(dotted)),
            record_bytes_max=1 << 20,
            transaction_version=version,
        )
        self.monotonic = 0.0
        self.wall_ms = START_MS
        self.log: list[tuple[bytes, bytes | None]] = []
        self.committed = 0
        self.pending: list[tuple[int, Decision, Ticket | None]] = []
        self.waiting: dict[Ticket, Then] = {}
        self.tickets = 0
        self.producer_ids = 1000
        self.timers: dict[object, float] = {}
        self.markers: list[WriteMarkers] = []
        """What is to be written, and was not yet."""
        self.load()

    @property
    def now(self) -> Instant:
        return Instant(self.monotonic, self.wall_ms)

    def load(self) -> None:
        """Have another machine, from what is in the log."""
        self.machine = TransactionMachine(self.context)
        self.timers.clear()
        self.markers.clear()
        self.pending.clear()
        self.waiting.clear()
        for offset, (key, value) in enumerate(self.log):
            decoded = decode_record(TYPES, key, value)
            assert decoded is not None
            self.machine.replay(Offset(offset), NO_PRODUCER, *decoded)
        self.committed = len(self.log)
        self.settle(self.machine.loaded(self.now), None)

    def crash(self, kept: int = 0) -> None:
        """Restart with what is committed, and a part of what is not; nobody gets an answer."""
        del self.log[min(len(self.log), self.committed + kept) :]
        self.load()

    # Deciding.

    def submit(self, command: Any, then: Then) -> None:
        self.tickets += 1
        ticket = Ticket(self.tickets)

        def decided(outcome: Any) -> None:
            if isinstance(outcome, ProducerIdNeeded):
                self.producer_ids += 1
                self.submit(replace(command, fresh_id=ProducerId(self.producer_ids)), then)
            else:
                then(outcome)

        self.waiting[ticket] = decided
        try:
            decision = self.machine.decide(command, ticket, self.now)
        except Refusal as refusal:
            self.waiting.pop(ticket)(refusal)
        else:
            self.settle(decision, ticket)

    def settle(self, decision: Decision, ticket: Ticket | None) -> None:
        for record in decision.records:
            self.append(record)
        for effect in decision.effects:
            if isinstance(effect, SetTimer):
                self.timers[effect.key] = effect.at
            elif isinstance(effect, CancelTimer):
                self.timers.pop(effect.key, None)
        self.pending.append((len(self.log), decision, ticket))
        if len(self.log) == self.committed:
            self.commit()

    def append(self, record: StoredRecord) -> None:
        self.log.append(record.encode())
        transactions = self.machine.shelf.transactions
        before = transactions.get(record.key.transactional_id)
        self.machine.replay(Offset(len(self.log) - 1), NO_PRODUCER, record.key, record.value)
        after = transactions.get(record.key.transactional_id)
        if before is not None and after is not None:
            assert before.state in PREVIOUS[after.state], (before, after)
            if before.producer_id == after.producer_id:
                assert before.producer_epoch <= after.producer_epoch, (before, after)

    def commit(self) -> None:
        """What is in the log cannot be lost any more: answer, and do what was decided."""
        self.committed = len(self.log)
        while self.pending and self.pending[0][0] <= self.committed:
            _, decision, ticket = self.pending.pop(0)
            if ticket is not None and decision.response is not None:
                self.answer(ticket, decision.response)
            for effect in decision.effects:
                self.perform(effect)

    def answer(self, ticket: Ticket, response: object) -> None:
        then = self.waiting.pop(ticket, None)
        if then is not None:
            then(response)

    def perform(self, effect: Effect) -> None:
        match effect:
            case Reply(ticket, response):
                self.answer(ticket, response)
            case Submit(command):
                self.submit(command, lambda _: None)
            case WriteMarkers():
                self.markers.append(effect)

    # Shortcuts for tests that go step by step.

    def ask(self, command: Any) -> Any:
        """Have a command decided and committed; return the answer, or the `Refusal`'s code."""
        answers: list[Any] = []
        self.submit(command, answers.append)
        self.commit()
        if not answers:
            return None
        return answers[0].code if isinstance(answers[0], Refusal) else answers[0]

    def init(self, expected: ProducerIdentity | None = None, **fields: Any) -> Any:
        answer = self.ask(InitProducer(ID, fields.pop("timeout_ms", 60_000), expected, **fields))
        return getattr(answer, "producer", answer)

    def add(self, producer: ProducerIdentity, *partitions: TopicPartition, **fields: Any) -> Any:
        version = fields.pop("client_version", self.client_version)
        return self.ask(AddPartitions(ID, producer, frozenset(partitions), version, **fields))

    def verify(self, producer: ProducerIdentity, *partitions: TopicPartition) -> Any:
        return self.ask(VerifyPartitions(ID, producer, frozenset(partitions)))

    def end(
        self, producer: ProducerIdentity, *, is_commit: bool = True, version: int | None = None
    ) -> Any:
        version = self.client_version if version is None else version
        return self.ask(EndTransaction(ID, producer, is_commit, version))

    def mark(self) -> list[WriteMarkers]:
        """All markers are written; return which."""
        markers, self.markers = self.markers, []
        for each in markers:
            self.ask(CompleteTransaction(each.transactional_id, each.producer))
        return markers

    @property
    def client_version(self) -> int:
        """What clients say who know as much as the cluster."""
        return 2 if self.context.transaction_version >= 2 else 0

    @property
    def known(self) -> Transaction:
        return self.machine.shelf.transactions[ID]

    @property
    def state(self) -> TransactionState:
        return self.known.state

    def pass_time(self, seconds: float, *, wall_seconds: float | None = None) -> None:
        """Let time pass, and timers run out; the wall clock may go otherwise."""
        self.wall_ms += int((seconds if wall_seconds is None else wall_seconds) * 1000)
        until = self.monotonic + seconds
        while self.timers:
            key = min(self.timers, key=lambda each: self.timers[each])
            if self.timers[key] > until:
                break
            self.monotonic = max(self.monotonic, self.timers.pop(key))
            self.settle(self.machine.expire(key, self.now), None)
        self.monotonic = until


def bumped(producer: ProducerIdentity, by: int = 1) -> ProducerIdentity:
    return ProducerIdentity(producer.id, ProducerEpoch(producer.epoch + by))
