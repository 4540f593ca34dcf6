"""Metadata, API key 3: v0-v13, flexible from v9."""

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


class MetadataRequestTopic(Struct):
    topic_id: Uuid = field(uuid, since=10, ignorable=True)
    name: str | None = field(string, nullable=10)


class MetadataRequest(Message, api_key=3, versions=(0, 13), flexible=9):
    topics: Sequence[MetadataRequestTopic] | None = field(Array(MetadataRequestTopic), nullable=1)
    allow_auto_topic_creation: bool = field(boolean, since=4, default=True)
    include_cluster_authorized_operations: bool = field(boolean, since=8, until=10)
    include_topic_authorized_operations: bool = field(boolean, since=8)


class MetadataResponseBroker(Struct):
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    rack: str | None = field(string, since=1, nullable=1, default=None, ignorable=True)


class MetadataResponsePartition(Struct):
    error_code: int = field(int16)
    partition_index: int = field(int32)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32, since=7, default=-1, ignorable=True)
    replica_nodes: Sequence[int] = field(Array(int32))
    isr_nodes: Sequence[int] = field(Array(int32))
    offline_replicas: Sequence[int] = field(Array(int32), since=5, ignorable=True)


class MetadataResponseTopic(Struct):
    error_code: int = field(int16)
    name: str | None = field(string, nullable=12)
    topic_id: Uuid = field(uuid, since=10, ignorable=True)
    is_internal: bool = field(boolean, since=1, ignorable=True)
    partitions: Sequence[MetadataResponsePartition] = field(Array(MetadataResponsePartition))
    topic_authorized_operations: int = field(int32, since=8, default=-2147483648)


class MetadataResponse(Message, api_key=3, versions=(0, 13), flexible=9):
    throttle_time_ms: int = field(int32, since=3, ignorable=True)
    brokers: Sequence[MetadataResponseBroker] = field(Array(MetadataResponseBroker))
    cluster_id: str | None = field(string, since=2, nullable=2, default=None, ignorable=True)
    controller_id: int = field(int32, since=1, default=-1, ignorable=True)
    topics: Sequence[MetadataResponseTopic] = field(Array(MetadataResponseTopic))
    cluster_authorized_operations: int = field(int32, since=8, until=10, default=-2147483648)
    error_code: int = field(int16, since=13, ignorable=True)
