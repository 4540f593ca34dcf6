"""DescribeTransactions, API key 65: v0, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, field, int16, int32, int64, string


class DescribeTransactionsRequest(Message, api_key=65, versions=(0, 0), flexible=0):
    transactional_ids: Sequence[str] = field(Array(string))


class TopicData(Struct):
    topic: str = field(string)
    partitions: Sequence[int] = field(Array(int32))


class TransactionState(Struct):
    error_code: int = field(int16)
    transactional_id: str = field(string)
    transaction_state: str = field(string)
    transaction_timeout_ms: int = field(int32)
    transaction_start_time_ms: int = field(int64)
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    topics: Sequence[TopicData] = field(Array(TopicData))


class DescribeTransactionsResponse(Message, api_key=65, versions=(0, 0), flexible=0):
    throttle_time_ms: int = field(int32)
    transaction_states: Sequence[TransactionState] = field(Array(TransactionState))
