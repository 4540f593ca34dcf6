"""ListTransactions, API key 66: v0-v2, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, field, int16, int32, int64, string


class ListTransactionsRequest(Message, api_key=66, versions=(0, 2), flexible=0):
    state_filters: Sequence[str] = field(Array(string))
    producer_id_filters: Sequence[int] = field(Array(int64))
    duration_filter: int = field(int64, since=1, default=-1)
    transactional_id_pattern: str | None = field(string, since=2, nullable=2, default=None)


class TransactionState(Struct):
    transactional_id: str = field(string)
    producer_id: int = field(int64)
    transaction_state: str = field(string)


class ListTransactionsResponse(Message, api_key=66, versions=(0, 2), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    unknown_state_filters: Sequence[str] = field(Array(string))
    transaction_states: Sequence[TransactionState] = field(Array(TransactionState))
