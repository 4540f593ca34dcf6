"""DescribeTransactions v0."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.request_parts import gather
from moldau.coordination.refusal import Refusal
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from moldau.transactions.commands import DescribeTransaction
from moldau.transactions.transaction import Transaction


def handle_describe_transactions(
    broker: Broker, call: Call, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse | None:
    """Tell how far the transactions of some ids are."""
    ids = request.transactional_ids
    parts = [partial(_describe, broker, each) for each in ids]
    gather(call, parts, partial(_answer, call, ids))
    return None


def _describe(
    broker: Broker, transactional_id: str, then: Callable[[Transaction | Refusal], None]
) -> None:
    if transactional_id:
        broker.coordinators.transactions.submit(
            transactional_id, DescribeTransaction(transactional_id), then
        )
    else:
        then(Refusal(ErrorCode.INVALID_REQUEST, "A transactional id is not empty."))


def _answer(call: Call, ids: Sequence[str], outcomes: Sequence[Transaction | Refusal]) -> None:
    states = [_shown(*each) for each in zip(ids, outcomes, strict=True)]
    call.answer(DescribeTransactionsResponse(transaction_states=states))


def _shown(transactional_id: str, outcome: Transaction | Refusal) -> TransactionState:
    if isinstance(outcome, Refusal):
        return TransactionState(transactional_id=transactional_id, error_code=outcome.code)
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(outcome.partitions):
        topics[topic].append(partition)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=outcome.state.shown,
        transaction_timeout_ms=outcome.timeout_ms,
        transaction_start_time_ms=outcome.start_ms,
        producer_id=outcome.producer_id,
        producer_epoch=outcome.producer_epoch,
        topics=[TopicData(topic=name, partitions=indexes) for name, indexes in topics.items()],
    )
