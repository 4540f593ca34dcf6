"""AddPartitionsToTxn, API key 24: v0-v5, flexible from v3."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    boolean,
    field,
    int16,
    int32,
    int64,
    string,
)


class AddPartitionsToTxnTopic(Struct):
    name: str = field(string)
    partitions: Sequence[int] = field(Array(int32))


class AddPartitionsToTxnTransaction(Struct):
    transactional_id: str = field(string)
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    verify_only: bool = field(boolean)
    topics: Sequence[AddPartitionsToTxnTopic] = field(Array(AddPartitionsToTxnTopic))


class AddPartitionsToTxnRequest(Message, api_key=24, versions=(0, 5), flexible=3):
    transactions: Sequence[AddPartitionsToTxnTransaction] = field(
        Array(AddPartitionsToTxnTransaction), since=4
    )
    v3_and_below_transactional_id: str = field(string, until=3)
    v3_and_below_producer_id: int = field(int64, until=3)
    v3_and_below_producer_epoch: int = field(int16, until=3)
    v3_and_below_topics: Sequence[AddPartitionsToTxnTopic] = field(
        Array(AddPartitionsToTxnTopic), until=3
    )


class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: int = field(int32)
    partition_error_code: int = field(int16)


class AddPartitionsToTxnTopicResult(Struct):
    name: str = field(string)
    results_by_partition: Sequence[AddPartitionsToTxnPartitionResult] = field(
        Array(AddPartitionsToTxnPartitionResult)
    )


class AddPartitionsToTxnResult(Struct):
    transactional_id: str = field(string)
    topic_results: Sequence[AddPartitionsToTxnTopicResult] = field(
        Array(AddPartitionsToTxnTopicResult)
    )


class AddPartitionsToTxnResponse(Message, api_key=24, versions=(0, 5), flexible=3):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16, since=4, ignorable=True)
    results_by_transaction: Sequence[AddPartitionsToTxnResult] = field(
        Array(AddPartitionsToTxnResult), since=4
    )
    results_by_topic_v3_and_below: Sequence[AddPartitionsToTxnTopicResult] = field(
        Array(AddPartitionsToTxnTopicResult), until=3
    )
