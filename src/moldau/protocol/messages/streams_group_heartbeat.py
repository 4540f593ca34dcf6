"""StreamsGroupHeartbeat, API key 88: v0-v1, flexible."""

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


class KeyValue(Struct):
    key: str = field(string)
    value: str = field(string)


class TopicInfo(Struct):
    name: str = field(string)
    partitions: int = field(int32)
    replication_factor: int = field(int16)
    topic_configs: Sequence[KeyValue] = field(Array(KeyValue))


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


class Topology(Struct):
    epoch: int = field(int32)
    subtopologies: Sequence[Subtopology] = field(Array(Subtopology))


class TaskIds(Struct):
    subtopology_id: str = field(string)
    partitions: Sequence[int] = field(Array(int32))


class Endpoint(Struct):
    host: str = field(string)
    port: int = field(uint16)


class TaskOffset(Struct):
    subtopology_id: str = field(string)
    partition: int = field(int32)
    offset: int = field(int64)


class StreamsGroupHeartbeatRequest(Message, api_key=88, versions=(0, 1), flexible=0):
    group_id: str = field(string)
    member_id: str = field(string)
    member_epoch: int = field(int32)
    endpoint_information_epoch: int = field(int32)
    instance_id: str | None = field(string, nullable=0, default=None)
    rack_id: str | None = field(string, nullable=0, default=None)
    rebalance_timeout_ms: int = field(int32, default=-1)
    topology: Topology | None = field(Topology, nullable=0, default=None)
    active_tasks: Sequence[TaskIds] | None = field(Array(TaskIds), nullable=0, default=None)
    standby_tasks: Sequence[TaskIds] | None = field(Array(TaskIds), nullable=0, default=None)
    warmup_tasks: Sequence[TaskIds] | None = field(Array(TaskIds), nullable=0, default=None)
    process_id: str | None = field(string, nullable=0, default=None)
    user_endpoint: Endpoint | None = field(Endpoint, nullable=0, default=None)
    client_tags: Sequence[KeyValue] | None = field(Array(KeyValue), nullable=0, default=None)
    task_offsets: Sequence[TaskOffset] | None = field(Array(TaskOffset), nullable=0, default=None)
    task_end_offsets: Sequence[TaskOffset] | None = field(
        Array(TaskOffset), nullable=0, default=None
    )
    shutdown_application: bool = field(boolean)


class Status(Struct):
    status_code: int = field(int8)
    status_detail: str = field(string)


class TopicPartition(Struct):
    topic: str = field(string)
    partitions: Sequence[int] = field(Array(int32))


class EndpointToPartitions(Struct):
    user_endpoint: Endpoint = field(Endpoint)
    active_partitions: Sequence[TopicPartition] = field(Array(TopicPartition))
    standby_partitions: Sequence[TopicPartition] = field(Array(TopicPartition))


class StreamsGroupHeartbeatResponse(Message, api_key=88, versions=(0, 1), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)
    member_id: str = field(string)
    member_epoch: int = field(int32)
    heartbeat_interval_ms: int = field(int32)
    acceptable_recovery_lag_legacy: int = field(int32, until=0)
    task_offset_interval_ms: int = field(int32)
    acceptable_recovery_lag: int = field(int64, since=1, default=-1, ignorable=True)
    status: Sequence[Status] | None = field(Array(Status), nullable=0)
    active_tasks: Sequence[TaskIds] | None = field(Array(TaskIds), nullable=0, default=None)
    standby_tasks: Sequence[TaskIds] | None = field(Array(TaskIds), nullable=0, default=None)
    warmup_tasks: Sequence[TaskIds] | None = field(Array(TaskIds), nullable=0, default=None)
    topology_description_required: bool = field(boolean, since=1)
    endpoint_information_epoch: int = field(int32)
    partitions_by_user_endpoint: Sequence[EndpointToPartitions] | None = field(
        Array(EndpointToPartitions), nullable=0, default=None
    )
