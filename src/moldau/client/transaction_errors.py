"""What the errors of transactions mean: try again, abort, or give the producer up, as in Java's."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final

from moldau.client.errors import KafkaError
from moldau.client.transaction_events import (
    AskEnd,
    AskGroup,
    AskIdentity,
    AskOffsets,
    AskPartitions,
    CoordinatorQuestion,
)
from moldau.protocol.errors import ErrorCode


class Verdict(IntEnum):
    """What an error leaves possible, the worst last."""

    RETRY = 0
    ABORT = 1
    NOT_YET = 2
    """Nothing has begun: the user may try again after something was done about it."""
    FATAL = 3


FENCING: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})

API_NAMES: Final[Mapping[type[CoordinatorQuestion], str]] = {
    AskIdentity: "InitProducerId",
    AskPartitions: "AddPartitionsToTxn",
    AskGroup: "AddOffsetsToTxn",
    AskOffsets: "TxnOffsetCommit",
    AskEnd: "EndTxn",
}

ABORTABLE: Final[Mapping[type[CoordinatorQuestion], frozenset[ErrorCode]]] = {
    AskIdentity: frozenset({ErrorCode.TRANSACTION_ABORTABLE}),
    AskGroup: frozenset(
        {
            ErrorCode.GROUP_AUTHORIZATION_FAILED,
            ErrorCode.UNKNOWN_PRODUCER_ID,
            ErrorCode.TRANSACTION_ABORTABLE,
        }
    ),
    AskOffsets: frozenset(
        {
            ErrorCode.GROUP_AUTHORIZATION_FAILED,
            ErrorCode.FENCED_INSTANCE_ID,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.ILLEGAL_GENERATION,
            ErrorCode.TRANSACTION_ABORTABLE,
        }
    ),
    AskEnd: frozenset({ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.TRANSACTION_ABORTABLE}),
}
"""After anything else the producer is of no use; of AddPartitionsToTxn see the next."""

FATAL_FOR_PARTITIONS: Final = frozenset(
    {
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)

UNAUTHORIZED: Final = frozenset(
    {
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    }
)

FATAL_FOR_BATCHES: Final = UNAUTHORIZED | {
    # INVALID_PRODUCER_EPOCH is not among them: EndTxn says who has really been fenced (KIP-588).
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
}


def batch_verdict(error: Exception) -> Verdict:
    """Return what a batch that was given up leaves possible."""
    if isinstance(error, KafkaError) and error.code in FATAL_FOR_BATCHES:
        return Verdict.FATAL
    return Verdict.ABORT


def verdict_of(question: CoordinatorQuestion, code: ErrorCode) -> Verdict:
    """Return what a coordinator's error leaves possible."""
    if code in FENCING:
        return Verdict.FATAL
    if code.retriable:
        return Verdict.RETRY
    if isinstance(question, AskPartitions):
        return Verdict.FATAL if code in FATAL_FOR_PARTITIONS else Verdict.ABORT
    if isinstance(question, AskIdentity) and code in UNAUTHORIZED:
        return Verdict.NOT_YET
    return Verdict.ABORT if code in ABORTABLE[type(question)] else Verdict.FATAL


def worst(
    question: CoordinatorQuestion, codes: Sequence[int], what: str
) -> tuple[Verdict | None, KafkaError | None]:
    """Return the verdict on the gravest of the codes, and its error; nothing if all is well."""
    errors = [KafkaError(code, f"{what}: {API_NAMES[type(question)]}") for code in codes if code]
    # Partitions that were not tried because of another say nothing of what is wrong.
    graves = [each for each in errors if each.code is not ErrorCode.OPERATION_NOT_ATTEMPTED]
    verdicts = [(verdict_of(question, each.code), each) for each in graves or errors]
    return max(verdicts, key=lambda each: each[0], default=(None, None))
