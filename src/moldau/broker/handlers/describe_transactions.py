"""DescribeTransactions v0."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.gathering import Gathering
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
    gathering = Gathering[TransactionState](
        len(ids), lambda states: call.attempt(partial(_answer, call, states))
    )
    for number, transactional_id in enumerate(ids):
        add = partial(gathering.add, number)
        if transactional_id:
            broker.coordinators.transactions.submit(
                transactional_id,
                DescribeTransaction(transactional_id),
                partial(_show, transactional_id, add),
            )
        else:
            add(_refused(transactional_id, ErrorCode.INVALID_REQUEST))
    return None


def _answer(call: Call, states: Sequence[TransactionState]) -> None:
    call.answer(DescribeTransactionsResponse(transaction_states=states))


def _show(
    transactional_id: str, add: Callable[[TransactionState], None], outcome: object
) -> None:
    add(_shown(transactional_id, outcome))


def _shown(transactional_id: str, outcome: object) -> TransactionState:
    if isinstance(outcome, Refusal):
        return _refused(transactional_id, outcome.code)
    assert isinstance(outcome, Transaction)
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


def _refused(transactional_id: str, code: ErrorCode) -> TransactionState:
    return TransactionState(transactional_id=transactional_id, error_code=code)
