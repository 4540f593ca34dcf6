"""CreateTopics, API key 19: v0-v7, flexible from v5, v0-v1 as in Kafka 3.9."""

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


class CreatableReplicaAssignment(Struct):
    partition_index: int = field(int32)
    broker_ids: Sequence[int] = field(Array(int32))


class CreatableTopicConfig(Struct):
    name: str = field(string)
    value: str | None = field(string, nullable=0)


class CreatableTopic(Struct):
    name: str = field(string)
    num_partitions: int = field(int32)
    replication_factor: int = field(int16)
    assignments: Sequence[CreatableReplicaAssignment] = field(Array(CreatableReplicaAssignment))
    configs: Sequence[CreatableTopicConfig] = field(Array(CreatableTopicConfig))


class CreateTopicsRequest(Message, api_key=19, versions=(0, 7), flexible=5):
    topics: Sequence[CreatableTopic] = field(Array(CreatableTopic))
    timeout_ms: int = field(int32, default=60000)
    validate_only: bool = field(boolean, since=1)


class CreatableTopicConfigs(Struct):
    name: str = field(string)
    value: str | None = field(string, nullable=0)
    read_only: bool = field(boolean)
    config_source: int = field(int8, default=-1)
    is_sensitive: bool = field(boolean)


class CreatableTopicResult(Struct):
    name: str = field(string)
    topic_id: Uuid = field(uuid, since=7, ignorable=True)
    error_code: int = field(int16)
    error_message: str | None = field(string, since=1, nullable=1, ignorable=True)
    topic_config_error_code: int = field(int16, since=5, tag=0, ignorable=True)
    num_partitions: int = field(int32, since=5, default=-1, ignorable=True)
    replication_factor: int = field(int16, since=5, default=-1, ignorable=True)
    configs: Sequence[CreatableTopicConfigs] | None = field(
        Array(CreatableTopicConfigs), since=5, nullable=5, ignorable=True
    )


class CreateTopicsResponse(Message, api_key=19, versions=(0, 7), flexible=5):
    throttle_time_ms: int = field(int32, since=2, ignorable=True)
    topics: Sequence[CreatableTopicResult] = field(Array(CreatableTopicResult))
