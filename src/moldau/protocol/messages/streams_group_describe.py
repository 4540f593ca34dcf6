"""StreamsGroupDescribe, API key 89: v0-v1, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    boolean,
    field,
    int8,
    int16,
    int32,
    int64,
    string,
    uint16,
)


class StreamsGroupDescribeRequest(Message, api_key=89, versions=(0, 1), flexible=0):
    group_ids: Sequence[str] = field(Array(string))
    include_authorized_operations: bool = field(boolean)
    include_topology_description: bool = field(boolean, since=1)


class KeyValue(Struct):
    key: str = field(string)
    value: str = field(string)


class TopicInfo(Struct):
    name: str = field(string)
    partitions: int = field(int32)
    replication_factor: int = field(int16)
    topic_configs: Sequence[KeyValue] = field(Array(KeyValue))


class Subtopology(Struct):
    subtopology_id: str = field(string)
    source_topics: Sequence[str] = field(Array(string))
    repartition_sink_topics: Sequence[str] = field(Array(string))
    state_changelog_topics: Sequence[TopicInfo] = field(Array(TopicInfo))
    repartition_source_topics: Sequence[TopicInfo] = field(Array(TopicInfo))


class Topology(Struct):
    epoch: int = field(int32)
    subtopologies: Sequence[Subtopology] | None = field(
        Array(Subtopology), nullable=0, default=None
    )


class Endpoint(Struct):
    host: str = field(string)
    port: int = field(uint16)


class TaskOffset(Struct):
    subtopology_id: str = field(string)
    partition: int = field(int32)
    offset: int = field(int64)


class TaskIds(Struct):
    subtopology_id: str = field(string)
    partitions: Sequence[int] = field(Array(int32))


class Assignment(Struct):
    active_tasks: Sequence[TaskIds] = field(Array(TaskIds))
    standby_tasks: Sequence[TaskIds] = field(Array(TaskIds))
    warmup_tasks: Sequence[TaskIds] = field(Array(TaskIds))


class Member(Struct):
    member_id: str = field(string)
    member_epoch: int = field(int32)
    instance_id: str | None = field(string, nullable=0, default=None)
    rack_id: str | None = field(string, nullable=0, default=None)
    client_id: str = field(string)
    client_host: str = field(string)
    topology_epoch: int = field(int32)
    process_id: str = field(string)
    user_endpoint: Endpoint | None = field(Endpoint, nullable=0, default=None)
    client_tags: Sequence[KeyValue] = field(Array(KeyValue))
    task_offsets: Sequence[TaskOffset] = field(Array(TaskOffset))
    task_end_offsets: Sequence[TaskOffset] = field(Array(TaskOffset))
    assignment: Assignment = field(Assignment)
    target_assignment: Assignment = field(Assignment)
    is_classic: bool = field(boolean)


class TopologyDescriptionNode(Struct):
    name: str = field(string)
    node_type: int = field(int8)
    source_topics: Sequence[str] = field(Array(string))
    sink_topic: str | None = field(string, nullable=0, default=None)
    stores: Sequence[str] = field(Array(string))
    successors: Sequence[str] = field(Array(string))


class TopologyDescriptionSubtopology(Struct):
    subtopology_id: str = field(string)
    nodes: Sequence[TopologyDescriptionNode] = field(Array(TopologyDescriptionNode))


class TopologyDescriptionGlobalStore(Struct):
    source: TopologyDescriptionNode = field(TopologyDescriptionNode)
    processor: TopologyDescriptionNode = field(TopologyDescriptionNode)


class TopologyDescription(Struct):
    subtopologies: Sequence[TopologyDescriptionSubtopology] = field(
        Array(TopologyDescriptionSubtopology)
    )
    global_stores: Sequence[TopologyDescriptionGlobalStore] = field(
        Array(TopologyDescriptionGlobalStore)
    )


class DescribedGroup(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)
    group_id: str = field(string)
    group_state: str = field(string)
    group_epoch: int = field(int32)
    assignment_epoch: int = field(int32)
    topology: Topology | None = field(Topology, nullable=0, default=None)
    members: Sequence[Member] = field(Array(Member))
    authorized_operations: int = field(int32, default=-2147483648)
    topology_description: TopologyDescription | None = field(
        TopologyDescription, since=1, nullable=1, default=None
    )
    topology_description_status: int = field(int8, since=1)
    assignor_name: str | None = field(string, since=1, nullable=1, default=None, ignorable=True)


class StreamsGroupDescribeResponse(Message, api_key=89, versions=(0, 1), flexible=0):
    throttle_time_ms: int = field(int32)
    groups: Sequence[DescribedGroup] = field(Array(DescribedGroup))
