"""ConsumerGroupHeartbeat, API key 68: v0-v1, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, Uuid, field, int16, int32, string, uuid


class TopicPartitions(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[int] = field(Array(int32))


class ConsumerGroupHeartbeatRequest(Message, api_key=68, versions=(0, 1), flexible=0):
    group_id: str = field(string)
    member_id: str = field(string)
    member_epoch: int = field(int32)
    instance_id: str | None = field(string, nullable=0, default=None)
    rack_id: str | None = field(string, nullable=0, default=None)
    rebalance_timeout_ms: int = field(int32, default=-1)
    subscribed_topic_names: Sequence[str] | None = field(Array(string), nullable=0, default=None)
    subscribed_topic_regex: str | None = field(string, since=1, nullable=1, default=None)
    server_assignor: str | None = field(string, nullable=0, default=None)
    topic_partitions: Sequence[TopicPartitions] | None = field(
        Array(TopicPartitions), nullable=0, default=None
    )


class Assignment(Struct):
    topic_partitions: Sequence[TopicPartitions] = field(Array(TopicPartitions))


class ConsumerGroupHeartbeatResponse(Message, api_key=68, versions=(0, 1), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)
    member_id: str | None = field(string, nullable=0, default=None)
    member_epoch: int = field(int32)
    heartbeat_interval_ms: int = field(int32)
    assignment: Assignment | None = field(Assignment, nullable=0, default=None)
