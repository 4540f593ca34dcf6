"""What a coordinator of transactions can be asked, what it answers, and what it wants done."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from moldau.coordination.machine import Effect, Producer
from moldau.coordination.refusal import Refusal
from moldau.kernel.ids import ProducerId, TopicPartition
from moldau.protocol.errors import ErrorCode


class ProducerIdNeeded(Refusal):
    """The command needs a producer id that nobody else has: submit it again with one."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "No producer id is to be had.")


@dataclass(frozen=True, slots=True)
class InitProducer:
    """Give a transactional id's producer an epoch of its own; the answer is `Initialized`."""

    transactional_id: str
    timeout_ms: int
    expected: Producer | None = None
    """Who the producer was before, if it says so (KIP-360)."""
    keeps_prepared: bool = False
    """Whether an open transaction is to be left open, for its owner to decide (KIP-939)."""
    fresh_id: ProducerId | None = None


class Initialized(NamedTuple):
    """Who the producer is from now on, and whose transaction is open."""

    producer: Producer
    ongoing: Producer | None = None


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """Have partitions in the transaction, which begins with the first; the answer is `DONE`."""

    transactional_id: str
    producer: Producer
    partitions: AbstractSet[TopicPartition]
    client_version: int
    may_wait: bool = False
    """Whether to wait for the transaction before to be completed, rather than to be refused."""


@dataclass(frozen=True, slots=True)
class VerifyPartitions:
    """Ask for the partitions that are not in the transaction; the answer is a set."""

    transactional_id: str
    producer: Producer
    partitions: AbstractSet[TopicPartition]


@dataclass(frozen=True, slots=True)
class EndTransaction:
    """Commit or abort; the answer is the `Producer` to go on with."""

    transactional_id: str
    producer: Producer
    is_commit: bool
    client_version: int
    fresh_id: ProducerId | None = None


@dataclass(frozen=True, slots=True)
class AbortTimedOut:
    """Abort a transaction that took too long, if it is still open."""

    transactional_id: str
    fresh_id: ProducerId | None = None


@dataclass(frozen=True, slots=True)
class CompleteTransaction:
    """Take note that every partition of a prepared transaction has its marker."""

    transactional_id: str
    producer: Producer


@dataclass(frozen=True, slots=True)
class DescribeTransaction:
    """Ask for a `Transaction`."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class ListTransactions:
    """Ask for all `Transaction`s of the partition."""


Identified: TypeAlias = InitProducer | EndTransaction | AbortTimedOut
"""Commands that may need a producer id."""


class Answer(Enum):
    """What there is to say when there is no more to say."""

    DONE = "done"


DONE: Final = Answer.DONE


@dataclass(frozen=True, slots=True)
class WriteMarkers(Effect):
    """End a prepared transaction in its partitions, then submit `CompleteTransaction`."""

    transactional_id: str
    producer: Producer
    is_commit: bool
    transaction_version: int
    partitions: AbstractSet[TopicPartition]


@dataclass(frozen=True, slots=True)
class Submit(Effect):
    """Have a command decided that nobody waits for."""

    command: AbortTimedOut
