"""What a coordinator of transactions can be asked, what it answers, and what it wants done."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.coordination.command import Answer, Command, Done
from moldau.coordination.decision import Effect
from moldau.coordination.producer import ProducerIdentity
from moldau.coordination.refusal import Refusal
from moldau.kernel.ids import ProducerId, TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.transactions.transaction import Transaction


class ProducerIdNeeded(Refusal):
    """The command needs a new producer id: submit it again with one."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "No producer id is to be had.")


@dataclass(frozen=True, slots=True)
class IdentifiedCommand(Command[Answer]):
    """A command that may need a producer id; the broker has the controller give it one."""

    fresh_id: ProducerId | None = field(default=None, kw_only=True)


class Initialized(NamedTuple):
    """A producer as it is from now on, and the one whose transaction is open."""

    producer: ProducerIdentity
    ongoing: ProducerIdentity | None = None


@dataclass(frozen=True, slots=True)
class InitProducer(IdentifiedCommand[Initialized]):
    """Give a transactional id's producer an epoch of its own."""

    transactional_id: str
    timeout_ms: int
    expected: ProducerIdentity | None = None
    """The producer's id and epoch before, if it says them (KIP-360)."""
    keeps_prepared: bool = False
    """Whether an open transaction is to be left open, for its owner to decide (KIP-939)."""


@dataclass(frozen=True, slots=True)
class AddPartitions(Command[Done]):
    """Have partitions in the transaction, which begins with the first."""

    transactional_id: str
    producer: ProducerIdentity
    partitions: AbstractSet[TopicPartition]
    client_version: int
    may_wait: bool = False
    """Whether to wait for the transaction before to be completed, rather than to be refused."""


@dataclass(frozen=True, slots=True)
class VerifyPartitions(Command[AbstractSet[TopicPartition]]):
    """Ask for the partitions that are not in the transaction."""

    transactional_id: str
    producer: ProducerIdentity
    partitions: AbstractSet[TopicPartition]


@dataclass(frozen=True, slots=True)
class EndTransaction(IdentifiedCommand[ProducerIdentity]):
    """Commit or abort; the answer is the producer to go on with."""

    transactional_id: str
    producer: ProducerIdentity
    is_commit: bool
    client_version: int


@dataclass(frozen=True, slots=True)
class AbortTimedOut(IdentifiedCommand[Done]):
    """Abort a transaction that took too long, if it is still open."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class CompleteTransaction(Command[Done]):
    """Take note that every partition of a prepared transaction has its marker."""

    transactional_id: str
    producer: ProducerIdentity


@dataclass(frozen=True, slots=True)
class DescribeTransaction(Command[Transaction]):
    """Ask for what is known of a transactional id."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class ListTransactions(Command[Sequence[Transaction]]):
    """Ask for what is known of all transactional ids of the partition."""


@dataclass(frozen=True, slots=True)
class WriteMarkers(Effect):
    """End a prepared transaction in its partitions, then submit `CompleteTransaction`."""

    transactional_id: str
    producer: ProducerIdentity
    is_commit: bool
    transaction_version: int
    partitions: AbstractSet[TopicPartition]


@dataclass(frozen=True, slots=True)
class Submit(Effect):
    """Have a command decided whose answer is of no use."""

    command: AbortTimedOut
