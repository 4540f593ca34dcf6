"""What the answers to EndTxn say about how a transaction has ended."""

from enum import Enum, auto
from typing import Final

from moldau.client.errors import ClientError, KafkaError
from moldau.protocol.errors import ErrorCode

GONE_ON: Final = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        # The id was forgotten, which happens a week after its last transaction has ended.
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    }
)


class TransactionOutcome(Enum):
    """How a transaction has ended, as far as that can be proved."""

    COMMITTED = auto()
    ABORTED = auto()
    UNKNOWN = auto()
    """The id has gone on: most likely the transaction has timed out, but nobody can say so."""


def classify(error: ClientError | None, *, is_commit: bool) -> TransactionOutcome:
    """Return how a transaction has ended, by what EndTxn has answered; raise what says nothing.

    The epoch is the one that the transaction was written with, and EndTxn compares it first: with
    the current one or, from transaction.version 2 on, with the one before it behind an end. So
    INVALID_TXN_STATE is about this very transaction, and says that it has ended the other way.
    """
    if error is None:
        return TransactionOutcome.COMMITTED if is_commit else TransactionOutcome.ABORTED
    code = error.code if isinstance(error, KafkaError) else None
    if code is ErrorCode.INVALID_TXN_STATE:
        return TransactionOutcome.ABORTED if is_commit else TransactionOutcome.COMMITTED
    if code in GONE_ON:
        return TransactionOutcome.UNKNOWN
    raise error
