"""DescribeProducers, API key 61: v0, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, field, int16, int32, int64, string


class TopicRequest(Struct):
    name: str = field(string)
    partition_indexes: Sequence[int] = field(Array(int32))


class DescribeProducersRequest(Message, api_key=61, versions=(0, 0), flexible=0):
    topics: Sequence[TopicRequest] = field(Array(TopicRequest))


class ProducerState(Struct):
    producer_id: int = field(int64)
    producer_epoch: int = field(int32)
    last_sequence: int = field(int32, default=-1)
    last_timestamp: int = field(int64, default=-1)
    coordinator_epoch: int = field(int32)
    current_txn_start_offset: int = field(int64, default=-1)


class PartitionResponse(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)
    active_producers: Sequence[ProducerState] = field(Array(ProducerState))


class TopicResponse(Struct):
    name: str = field(string)
    partitions: Sequence[PartitionResponse] = field(Array(PartitionResponse))


class DescribeProducersResponse(Message, api_key=61, versions=(0, 0), flexible=0):
    throttle_time_ms: int = field(int32)
    topics: Sequence[TopicResponse] = field(Array(TopicResponse))
