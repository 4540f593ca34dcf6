"""ListTransactions v0-v2. v1 a filter by duration; v2 one by a pattern of ids (KIP-1152)."""

from collections.abc import Callable, Sequence
from functools import partial

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.requests import ask_shards
from moldau.broker.coordinators.shard import ShardState
from moldau.broker.patterns import compile_pattern
from moldau.coordination.refusal import Refusal
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from moldau.transactions.commands import ListTransactions
from moldau.transactions.state import STATES_BY_NAME
from moldau.transactions.transaction import Transaction

TransactionFilter = Callable[[Transaction], bool]


def handle_list_transactions(
    broker: Broker, call: Call, request: ListTransactionsRequest
) -> ListTransactionsResponse | None:
    """Tell of all transactions that are coordinated here, or of those that pass the filters."""
    shards = list(broker.coordinators.transactions)
    if any(shard.state is ShardState.LOADING for shard in shards):
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    try:
        passes = _filter(request, broker.environment.now().wall_ms)
    except Refusal as refusal:
        return ListTransactionsResponse(error_code=refusal.code)
    unknown = [name for name in request.state_filters if name not in STATES_BY_NAME]
    active = [shard for shard in shards if shard.state is ShardState.ACTIVE]
    ask_shards(call, active, ListTransactions(), partial(_answer, call, passes, unknown))
    return None


def _filter(request: ListTransactionsRequest, now_ms: int) -> TransactionFilter:
    states = {STATES_BY_NAME.get(name) for name in request.state_filters}
    producer_ids = set(request.producer_id_filters)
    duration_ms = request.duration_filter
    pattern = request.transactional_id_pattern
    matches = compile_pattern(pattern) if pattern else None

    def passes(transaction: Transaction) -> bool:
        return (
            (not states or transaction.state in states)
            and (not producer_ids or transaction.producer_id in producer_ids)
            and (duration_ms < 0 or now_ms - transaction.start_ms > duration_ms)
            and (matches is None or matches(transaction.transactional_id))
        )

    return passes


def _answer(
    call: Call,
    passes: TransactionFilter,
    unknown: Sequence[str],
    outcomes: Sequence[Sequence[Transaction] | Refusal],
) -> None:
    found: list[Transaction] = []
    for outcome in outcomes:
        if isinstance(outcome, Refusal):
            call.answer(ListTransactionsResponse(error_code=outcome.code))
            return
        found += [each for each in outcome if passes(each)]
    call.answer(
        ListTransactionsResponse(
            unknown_state_filters=unknown,
            transaction_states=[
                TransactionState(
                    transactional_id=each.transactional_id,
                    producer_id=each.producer_id,
                    transaction_state=each.state.shown,
                )
                for each in found
            ],
        )
    )
