"""Transactions, coordinated by the leader of their partition of __transaction_state."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from moldau.broker.coordinators.coordinator import Coordinator
from moldau.broker.coordinators.first_sequences import FirstSequences
from moldau.broker.coordinators.markers import TransactionMarkers
from moldau.broker.coordinators.record_size import record_bytes_max
from moldau.broker.coordinators.shard import Shard
from moldau.broker.internal_topics import TRANSACTION_STATE
from moldau.coordination.command import Answer, Command, Done
from moldau.coordination.decision import Effect
from moldau.coordination.refusal import Refusal
from moldau.coordination.refusal_codes import ErrorReader, told_code
from moldau.coordination.stored_record import RecordTypes, record_types
from moldau.kernel.ids import ProducerId, TopicPartition
from moldau.metadata.features import TRANSACTION_VERSION
from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.topics import Topic
from moldau.protocol.errors import ErrorCode
from moldau.protocol.stored import transaction_state
from moldau.transactions.commands import (
    AddPartitions,
    IdentifiedCommand,
    ProducerIdNeeded,
    Submit,
    VerifyPartitions,
    WriteMarkers,
)
from moldau.transactions.machine import TransactionMachine

if TYPE_CHECKING:
    from moldau.broker.coordinators.siblings import CoordinatingBroker


class TransactionCoordinator(Coordinator):
    """Has the transactional ids of the partitions that are led here."""

    topic = TRANSACTION_STATE

    def __init__(self, broker: "CoordinatingBroker") -> None:
        super().__init__(broker)
        self.first_sequences = FirstSequences()
        self.writes: Counter[ProducerId] = Counter()
        """How many writes of each producer wait to be admitted: those behind them wait, too."""

    def make_machine(self) -> TransactionMachine:
        """Return a machine without transactions."""
        return TransactionMachine(_Context(self._broker))

    def record_types(self) -> RecordTypes:
        """Return what may be in the topic."""
        return _RECORD_TYPES

    def perform(self, shard: Shard, effect: Effect) -> None:
        """Do what a transaction wants to be done outside of it."""
        match effect:
            case WriteMarkers():
                TransactionMarkers(self._broker, shard, effect).go_on()
            case Submit(command):
                self.submit(command.transactional_id, command, _ignore)
            case _:
                raise AssertionError(f"{shard.replica.partition} wants {effect}")

    def topics_changed(self, removed: Sequence[Topic]) -> None:
        """Nothing: that a partition is gone shows when its marker is to be written."""

    def submit(
        self, key: str, command: Command[Answer], then: Callable[[Answer | Refusal], None]
    ) -> None:
        """Have a command decided, with a producer id if it turns out to need one."""
        if isinstance(command, IdentifiedCommand):
            super().submit(key, command, partial(self._decided, key, command, then))
        else:
            super().submit(key, command, then)

    def _decided(
        self,
        key: str,
        command: IdentifiedCommand[Answer],
        then: Callable[[Answer | Refusal], None],
        outcome: Answer | Refusal,
    ) -> None:
        if isinstance(outcome, ProducerIdNeeded):
            self._broker.producer_ids.take(partial(self._identify, key, command, then))
        else:
            then(outcome)

    def _identify(
        self,
        key: str,
        command: IdentifiedCommand[Answer],
        then: Callable[[Answer | Refusal], None],
        producer_id: ProducerId | None,
    ) -> None:
        if producer_id is None:
            then(ProducerIdNeeded())
        else:
            super().submit(key, replace(command, fresh_id=producer_id), then)

    def admit(
        self,
        command: AddPartitions | VerifyPartitions,
        then: Callable[[Mapping[TopicPartition, ErrorCode]], None],
    ) -> None:
        """Have a producer's writes to partitions admitted; `then` gets errors by partition.

        They are the errors that clients of any version expect of a write.
        """
        producer_id = command.producer.id
        self.writes[producer_id] += 1

        def answer(missing: AbstractSet[TopicPartition] | Refusal) -> None:
            self.writes[producer_id] -= 1
            if not self.writes[producer_id]:
                del self.writes[producer_id]
            if isinstance(missing, Refusal):
                code = told_code(ErrorReader.TRANSACTIONAL_WRITER, missing.code)
                then(dict.fromkeys(command.partitions, code))
            else:
                then(dict.fromkeys(missing, ErrorCode.TRANSACTION_ABORTABLE))

        if isinstance(command, VerifyPartitions):
            self.submit(command.transactional_id, command, answer)
        else:
            self.submit(
                command.transactional_id,
                command,
                lambda outcome: answer(outcome if isinstance(outcome, Refusal) else frozenset()),
            )


def _ignore(_outcome: Done | Refusal) -> None:
    """What was not done is tried again, or was done by another producer's request."""


_RECORD_TYPES = record_types(transaction_state)


class _Context:
    """The broker, as transactions see it."""

    def __init__(self, broker: "CoordinatingBroker") -> None:
        self._broker = broker

    @property
    def settings(self) -> BrokerSettings:
        """The broker's settings, as they are now."""
        return self._broker.settings

    @property
    def record_bytes_max(self) -> int:
        """How large a record may be, by the settings of the transactions' topic."""
        return record_bytes_max(self._broker, TransactionCoordinator.topic)

    @property
    def transaction_version(self) -> int:
        """The cluster's level of transaction.version."""
        return self._broker.image.levels.get(TRANSACTION_VERSION, 0)
