"""Records of share groups in __consumer_offsets."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    Uuid,
    field,
    int8,
    int32,
    int64,
    string,
    uuid,
)


class ShareGroupMetadataKey(Message, api_key=11, versions=(0, 0)):
    group_id: str = field(string)


class ShareGroupMetadataValue(Message, api_key=11, versions=(0, 0), flexible=0):
    epoch: int = field(int32)
    metadata_hash: int = field(int64)


class ShareGroupMemberMetadataKey(Message, api_key=10, versions=(0, 0)):
    group_id: str = field(string)
    member_id: str = field(string)


class ShareGroupMemberMetadataValue(Message, api_key=10, versions=(0, 0), flexible=0):
    rack_id: str | None = field(string, nullable=0)
    client_id: str = field(string)
    client_host: str = field(string)
    subscribed_topic_names: Sequence[str] = field(Array(string))


class ShareGroupTargetAssignmentMetadataKey(Message, api_key=12, versions=(0, 0)):
    group_id: str = field(string)


class ShareGroupTargetAssignmentMetadataValue(Message, api_key=12, versions=(0, 0), flexible=0):
    assignment_epoch: int = field(int32)
    assignment_timestamp: int = field(int64, tag=0)


class ShareGroupTargetAssignmentMemberKey(Message, api_key=13, versions=(0, 0)):
    group_id: str = field(string)
    member_id: str = field(string)


class TopicPartition(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[int] = field(Array(int32))


class ShareGroupTargetAssignmentMemberValue(Message, api_key=13, versions=(0, 0), flexible=0):
    topic_partitions: Sequence[TopicPartition] = field(Array(TopicPartition))


class ShareGroupCurrentMemberAssignmentKey(Message, api_key=14, versions=(0, 0)):
    group_id: str = field(string)
    member_id: str = field(string)


class TopicPartitions(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[int] = field(Array(int32))


class ShareGroupCurrentMemberAssignmentValue(Message, api_key=14, versions=(0, 0), flexible=0):
    member_epoch: int = field(int32)
    previous_member_epoch: int = field(int32)
    state: int = field(int8)
    assigned_partitions: Sequence[TopicPartitions] = field(Array(TopicPartitions))


class ShareGroupStatePartitionMetadataKey(Message, api_key=15, versions=(0, 0)):
    group_id: str = field(string)


class TopicPartitionsInfo(Struct):
    topic_id: Uuid = field(uuid)
    topic_name: str = field(string)
    partitions: Sequence[int] = field(Array(int32))


class TopicInfo(Struct):
    topic_id: Uuid = field(uuid)
    topic_name: str = field(string)


class ShareGroupStatePartitionMetadataValue(Message, api_key=15, versions=(0, 0), flexible=0):
    initializing_topics: Sequence[TopicPartitionsInfo] = field(Array(TopicPartitionsInfo))
    initialized_topics: Sequence[TopicPartitionsInfo] = field(Array(TopicPartitionsInfo))
    deleting_topics: Sequence[TopicInfo] = field(Array(TopicInfo))
