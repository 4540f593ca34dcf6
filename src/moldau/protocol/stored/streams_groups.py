"""Records of streams groups in __consumer_offsets."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    field,
    int8,
    int16,
    int32,
    int64,
    string,
    uint16,
)


class StreamsGroupMetadataKey(Message, api_key=17, versions=(0, 0)):
    group_id: str = field(string)


class LastAssignmentConfig(Struct):
    key: str = field(string)
    value: str = field(string)


class StreamsGroupMetadataValue(Message, api_key=17, versions=(0, 0), flexible=0):
    epoch: int = field(int32)
    metadata_hash: int = field(int64)
    validated_topology_epoch: int = field(int32, tag=0, default=-1)
    last_assignment_configs: Sequence[LastAssignmentConfig] | None = field(
        Array(LastAssignmentConfig), nullable=0, tag=1
    )


class StreamsGroupMemberMetadataKey(Message, api_key=19, versions=(0, 0)):
    group_id: str = field(string)
    member_id: str = field(string)


class Endpoint(Struct):
    host: str = field(string)
    port: int = field(uint16)


class KeyValue(Struct):
    key: str = field(string)
    value: str = field(string)


class StreamsGroupMemberMetadataValue(Message, api_key=19, versions=(0, 0), flexible=0):
    instance_id: str | None = field(string, nullable=0)
    rack_id: str | None = field(string, nullable=0)
    client_id: str = field(string)
    client_host: str = field(string)
    rebalance_timeout_ms: int = field(int32, default=-1)
    topology_epoch: int = field(int32)
    process_id: str = field(string)
    user_endpoint: Endpoint | None = field(Endpoint, nullable=0, default=None)
    client_tags: Sequence[KeyValue] = field(Array(KeyValue))


class StreamsGroupTargetAssignmentMetadataKey(Message, api_key=20, versions=(0, 0)):
    group_id: str = field(string)


class StreamsGroupTargetAssignmentMetadataValue(Message, api_key=20, versions=(0, 0), flexible=0):
    assignment_epoch: int = field(int32)
    assignment_timestamp: int = field(int64, tag=0)


class StreamsGroupTargetAssignmentMemberKey(Message, api_key=21, versions=(0, 0)):
    group_id: str = field(string)
    member_id: str = field(string)


class StreamsGroupTargetAssignmentMemberValueTaskIds(Struct):
    subtopology_id: str = field(string)
    partitions: Sequence[int] = field(Array(int32))


class StreamsGroupTargetAssignmentMemberValue(Message, api_key=21, versions=(0, 0), flexible=0):
    active_tasks: Sequence[StreamsGroupTargetAssignmentMemberValueTaskIds] = field(
        Array(StreamsGroupTargetAssignmentMemberValueTaskIds)
    )
    standby_tasks: Sequence[StreamsGroupTargetAssignmentMemberValueTaskIds] = field(
        Array(StreamsGroupTargetAssignmentMemberValueTaskIds)
    )
    warmup_tasks: Sequence[StreamsGroupTargetAssignmentMemberValueTaskIds] = field(
        Array(StreamsGroupTargetAssignmentMemberValueTaskIds)
    )


class StreamsGroupCurrentMemberAssignmentKey(Message, api_key=22, versions=(0, 0)):
    group_id: str = field(string)
    member_id: str = field(string)


class StreamsGroupCurrentMemberAssignmentValueTaskIds(Struct):
    subtopology_id: str = field(string)
    partitions: Sequence[int] = field(Array(int32))
    assignment_epochs: Sequence[int] | None = field(Array(int32), nullable=0, tag=0)


class StreamsGroupCurrentMemberAssignmentValue(Message, api_key=22, versions=(0, 0), flexible=0):
    member_epoch: int = field(int32)
    previous_member_epoch: int = field(int32)
    state: int = field(int8)
    active_tasks: Sequence[StreamsGroupCurrentMemberAssignmentValueTaskIds] = field(
        Array(StreamsGroupCurrentMemberAssignmentValueTaskIds)
    )
    standby_tasks: Sequence[StreamsGroupCurrentMemberAssignmentValueTaskIds] = field(
        Array(StreamsGroupCurrentMemberAssignmentValueTaskIds)
    )
    warmup_tasks: Sequence[StreamsGroupCurrentMemberAssignmentValueTaskIds] = field(
        Array(StreamsGroupCurrentMemberAssignmentValueTaskIds)
    )
    active_tasks_pending_revocation: Sequence[StreamsGroupCurrentMemberAssignmentValueTaskIds] = (
        field(Array(StreamsGroupCurrentMemberAssignmentValueTaskIds))
    )
    standby_tasks_pending_revocation: Sequence[StreamsGroupCurrentMemberAssignmentValueTaskIds] = (
        field(Array(StreamsGroupCurrentMemberAssignmentValueTaskIds))
    )
    warmup_tasks_pending_revocation: Sequence[StreamsGroupCurrentMemberAssignmentValueTaskIds] = (
        field(Array(StreamsGroupCurrentMemberAssignmentValueTaskIds))
    )


class StreamsGroupTopologyKey(Message, api_key=23, versions=(0, 0)):
    group_id: str = field(string)


class TopicConfig(Struct):
    key: str = field(string)
    value: str = field(string)


class TopicInfo(Struct):
    name: str = field(string)
    partitions: int = field(int32)
    replication_factor: int = field(int16)
    topic_configs: Sequence[TopicConfig] = field(Array(TopicConfig))


class CopartitionGroup(Struct):
    source_topics: Sequence[int] = field(Array(int16))
    source_topic_regex: Sequence[int] = field(Array(int16))
    repartition_source_topics: Sequence[int] = field(Array(int16))


class Subtopology(Struct):
    subtopology_id: str = field(string)
    source_topics: Sequence[str] = field(Array(string))
    source_topic_regex: Sequence[str] = field(Array(string))
    state_changelog_topics: Sequence[TopicInfo] = field(Array(TopicInfo))
    repartition_sink_topics: Sequence[str] = field(Array(string))
    repartition_source_topics: Sequence[TopicInfo] = field(Array(TopicInfo))
    copartition_groups: Sequence[CopartitionGroup] = field(Array(CopartitionGroup))


class StreamsGroupTopologyValue(Message, api_key=23, versions=(0, 0), flexible=0):
    epoch: int = field(int32)
    subtopologies: Sequence[Subtopology] = field(Array(Subtopology))
