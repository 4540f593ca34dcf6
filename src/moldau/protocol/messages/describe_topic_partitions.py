"""DescribeTopicPartitions, API key 75: v0, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    Uuid,
    boolean,
    field,
    int16,
    int32,
    string,
    uuid,
)


class TopicRequest(Struct):
    name: str = field(string)


class Cursor(Struct):
    topic_name: str = field(string)
    partition_index: int = field(int32)


class DescribeTopicPartitionsRequest(Message, api_key=75, versions=(0, 0), flexible=0):
    topics: Sequence[TopicRequest] = field(Array(TopicRequest))
    response_partition_limit: int = field(int32, default=2000)
    cursor: Cursor | None = field(Cursor, nullable=0, default=None)


class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: int = field(int16)
    partition_index: int = field(int32)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32, default=-1)
    replica_nodes: Sequence[int] = field(Array(int32))
    isr_nodes: Sequence[int] = field(Array(int32))
    eligible_leader_replicas: Sequence[int] | None = field(Array(int32), nullable=0, default=None)
    last_known_elr: Sequence[int] | None = field(Array(int32), nullable=0, default=None)
    offline_replicas: Sequence[int] = field(Array(int32))


class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: int = field(int16)
    name: str | None = field(string, nullable=0)
    topic_id: Uuid = field(uuid)
    is_internal: bool = field(boolean)
    partitions: Sequence[DescribeTopicPartitionsResponsePartition] = field(
        Array(DescribeTopicPartitionsResponsePartition)
    )
    topic_authorized_operations: int = field(int32, default=-2147483648)


class DescribeTopicPartitionsResponse(Message, api_key=75, versions=(0, 0), flexible=0):
    throttle_time_ms: int = field(int32)
    topics: Sequence[DescribeTopicPartitionsResponseTopic] = field(
        Array(DescribeTopicPartitionsResponseTopic)
    )
    next_cursor: Cursor | None = field(Cursor, nullable=0, default=None)
