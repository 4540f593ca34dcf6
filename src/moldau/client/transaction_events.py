"""What happens to a producer's transactions, and what they want done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from moldau.client.group_metadata import CommittedOffset, GroupMetadata
from moldau.client.outbox_events import OutboxProducer
from moldau.kernel.ids import TopicPartition


class TransactionOperation(Enum):
    """What a user waits for, named as it is called."""

    INITIALIZE = "init_transactions"
    SEND_OFFSETS = "send_offsets"
    PREPARE = "prepare_transaction"
    COMMIT = "commit_transaction"
    ABORT = "abort_transaction"


# What coordinators are asked.


@dataclass(frozen=True, slots=True)
class AskIdentity:
    """InitProducerId: for a new identity, or for the next epoch of one."""

    identity: OutboxProducer
    keep_prepared: bool = False


@dataclass(frozen=True, slots=True)
class AskPartitions:
    """AddPartitionsToTxn, which producers before KIP-890 send."""

    identity: OutboxProducer
    places: Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class AskGroup:
    """AddOffsetsToTxn, which producers before KIP-890 send."""

    identity: OutboxProducer
    group_id: str


@dataclass(frozen=True, slots=True)
class AskOffsets:
    """TxnOffsetCommit, the one thing that the group's coordinator is asked."""

    identity: OutboxProducer
    group: GroupMetadata
    offsets: Mapping[TopicPartition, CommittedOffset]


@dataclass(frozen=True, slots=True)
class AskEnd:
    """EndTxn."""

    identity: OutboxProducer
    is_commit: bool


CoordinatorQuestion: TypeAlias = AskIdentity | AskPartitions | AskGroup | AskOffsets | AskEnd

# Events.


@dataclass(frozen=True, slots=True)
class Initialize:
    """`init_transactions`; the cluster's features say which protocol is spoken."""

    is_v2: bool
    keep_prepared: bool = False


@dataclass(frozen=True, slots=True)
class Begin:
    """`begin_transaction`."""


@dataclass(frozen=True, slots=True)
class SendOffsets:
    """`send_offsets`."""

    group: GroupMetadata
    offsets: Mapping[TopicPartition, CommittedOffset]


@dataclass(frozen=True, slots=True)
class Prepare:
    """`prepare_transaction`, or `hand_over_transaction`, after which it may expire."""

    may_expire: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """`commit_transaction` or `abort_transaction`."""

    is_commit: bool


@dataclass(frozen=True, slots=True)
class PartitionWanted:
    """The outbox has batches of a partition that is not in the transaction."""

    place: tuple[str, int]


@dataclass(frozen=True, slots=True)
class BatchFailed:
    """The outbox has given up a batch."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Drained:
    """The outbox is empty, as it was asked to become."""

    drain: "Drain"


@dataclass(frozen=True, slots=True)
class Replied:
    """A coordinator has answered; its codes are all zero if it has done what it was asked."""

    codes: Sequence[int]
    identity: OutboxProducer | None = None
    prepared: OutboxProducer | None = None
    """The transaction that InitProducerId has kept."""


@dataclass(frozen=True, slots=True)
class NotReplied:
    """There is no coordinator for now, or its answer was lost."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Refused:
    """The question cannot be asked: the broker is too old for it."""

    error: Exception


@dataclass(frozen=True, slots=True)
class TransactionTick:
    """Time has passed."""


TransactionEvent: TypeAlias = (
    Initialize
    | Begin
    | SendOffsets
    | Prepare
    | End
    | PartitionWanted
    | BatchFailed
    | Drained
    | Replied
    | NotReplied
    | Refused
    | TransactionTick
)

# Effects.


@dataclass(frozen=True, slots=True)
class AskCoordinator:
    """Ask the coordinator, once."""

    question: CoordinatorQuestion


@dataclass(frozen=True, slots=True)
class Admit:
    """Let the outbox send these partitions' batches."""

    places: Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True, eq=False)
class Drain:
    """Empty the outbox: by sending everything, or with an error by giving up what it can."""

    error: Exception | None


@dataclass(frozen=True, slots=True)
class Renew:
    """Let the outbox begin anew, with this identity."""

    identity: OutboxProducer


@dataclass(frozen=True, slots=True)
class Settle:
    """Tell the user what became of an operation."""

    operation: TransactionOperation
    error: Exception | None = None


TransactionEffect: TypeAlias = AskCoordinator | Admit | Drain | Renew | Settle
