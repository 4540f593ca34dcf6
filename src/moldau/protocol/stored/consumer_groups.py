"""Records of consumer groups in __consumer_offsets."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    Uuid,
    blob,
    field,
    int8,
    int32,
    int64,
    string,
    uuid,
)


class ConsumerGroupMetadataKey(Message, api_key=3, versions=(0, 0)):
    group_id: str = field(string)


class ConsumerGroupMetadataValue(Message, api_key=3, versions=(0, 0), flexible=0):
    epoch: int = field(int32)
    metadata_hash: int = field(int64, tag=0)


class ConsumerGroupMemberMetadataKey(Message, api_key=5, versions=(0, 0)):
    group_id: str = field(string)
    member_id: str = field(string)


class ClassicProtocol(Struct):
    name: str = field(string)
    metadata: bytes = field(blob)


class ClassicMemberMetadata(Struct):
    session_timeout_ms: int = field(int32)
    supported_protocols: Sequence[ClassicProtocol] = field(Array(ClassicProtocol))


class ConsumerGroupMemberMetadataValue(Message, api_key=5, versions=(0, 0), flexible=0):
    instance_id: str | None = field(string, nullable=0)
    rack_id: str | None = field(string, nullable=0)
    client_id: str = field(string)
    client_host: str = field(string)
    subscribed_topic_names: Sequence[str] = field(Array(string))
    subscribed_topic_regex: str | None = field(string, nullable=0)
    rebalance_timeout_ms: int = field(int32, default=-1)
    server_assignor: str | None = field(string, nullable=0)
    classic_member_metadata: ClassicMemberMetadata | None = field(
        ClassicMemberMetadata, nullable=0, tag=0
    )


class ConsumerGroupTargetAssignmentMetadataKey(Message, api_key=6, versions=(0, 0)):
    group_id: str = field(string)


class ConsumerGroupTargetAssignmentMetadataValue(Message, api_key=6, versions=(0, 0), flexible=0):
    assignment_epoch: int = field(int32)
    assignment_timestamp: int = field(int64, tag=0)


class ConsumerGroupTargetAssignmentMemberKey(Message, api_key=7, versions=(0, 0)):
    group_id: str = field(string)
    member_id: str = field(string)


class TopicPartition(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[int] = field(Array(int32))


class ConsumerGroupTargetAssignmentMemberValue(Message, api_key=7, versions=(0, 0), flexible=0):
    topic_partitions: Sequence[TopicPartition] = field(Array(TopicPartition))


class ConsumerGroupCurrentMemberAssignmentKey(Message, api_key=8, versions=(0, 0)):
    group_id: str = field(string)
    member_id: str = field(string)


class TopicPartitions(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[int] = field(Array(int32))
    assignment_epochs: Sequence[int] | None = field(Array(int32), nullable=0, tag=0)


class ConsumerGroupCurrentMemberAssignmentValue(Message, api_key=8, versions=(0, 0), flexible=0):
    member_epoch: int = field(int32)
    previous_member_epoch: int = field(int32)
    state: int = field(int8)
    assigned_partitions: Sequence[TopicPartitions] = field(Array(TopicPartitions))
    partitions_pending_revocation: Sequence[TopicPartitions] = field(Array(TopicPartitions))


class ConsumerGroupPartitionMetadataKey(Message, api_key=4, versions=(0, 0)):
    group_id: str = field(string)


class PartitionMetadata(Struct):
    partition: int = field(int32)
    racks: Sequence[str] = field(Array(string))


class TopicMetadata(Struct):
    topic_id: Uuid = field(uuid)
    topic_name: str = field(string)
    num_partitions: int = field(int32)
    partition_metadata: Sequence[PartitionMetadata] = field(Array(PartitionMetadata))


class ConsumerGroupPartitionMetadataValue(Message, api_key=4, versions=(0, 0), flexible=0):
    topics: Sequence[TopicMetadata] = field(Array(TopicMetadata))


class ConsumerGroupRegularExpressionKey(Message, api_key=16, versions=(0, 0)):
    group_id: str = field(string)
    regular_expression: str = field(string)


class ConsumerGroupRegularExpressionValue(Message, api_key=16, versions=(0, 0), flexible=0):
    topics: Sequence[str] = field(Array(string))
    version: int = field(int64)
    timestamp: int = field(int64)
