"""ConsumerGroupDescribe, API key 69: v0-v1, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    Uuid,
    boolean,
    field,
    int8,
    int16,
    int32,
    string,
    uuid,
)


class ConsumerGroupDescribeRequest(Message, api_key=69, versions=(0, 1), flexible=0):
    group_ids: Sequence[str] = field(Array(string))
    include_authorized_operations: bool = field(boolean)


class TopicPartitions(Struct):
    topic_id: Uuid = field(uuid)
    topic_name: str = field(string)
    partitions: Sequence[int] = field(Array(int32))


class Assignment(Struct):
    topic_partitions: Sequence[TopicPartitions] = field(Array(TopicPartitions))


class Member(Struct):
    member_id: str = field(string)
    instance_id: str | None = field(string, nullable=0, default=None)
    rack_id: str | None = field(string, nullable=0, default=None)
    member_epoch: int = field(int32)
    client_id: str = field(string)
    client_host: str = field(string)
    subscribed_topic_names: Sequence[str] = field(Array(string))
    subscribed_topic_regex: str | None = field(string, nullable=0, default=None)
    assignment: Assignment = field(Assignment)
    target_assignment: Assignment = field(Assignment)
    member_type: int = field(int8, since=1, default=-1, ignorable=True)


class DescribedGroup(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)
    group_id: str = field(string)
    group_state: str = field(string)
    group_epoch: int = field(int32)
    assignment_epoch: int = field(int32)
    assignor_name: str = field(string)
    members: Sequence[Member] = field(Array(Member))
    authorized_operations: int = field(int32, default=-2147483648)


class ConsumerGroupDescribeResponse(Message, api_key=69, versions=(0, 1), flexible=0):
    throttle_time_ms: int = field(int32)
    groups: Sequence[DescribedGroup] = field(Array(DescribedGroup))
