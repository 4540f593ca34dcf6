"""OffsetFetch, API key 9: v0-v10, flexible from v6, v0 as in Kafka 3.9."""

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
    int64,
    string,
    uuid,
)


class OffsetFetchRequestTopic(Struct):
    name: str = field(string)
    partition_indexes: Sequence[int] = field(Array(int32))


class OffsetFetchRequestTopics(Struct):
    name: str = field(string, until=9, ignorable=True)
    topic_id: Uuid = field(uuid, since=10, ignorable=True)
    partition_indexes: Sequence[int] = field(Array(int32))


class OffsetFetchRequestGroup(Struct):
    group_id: str = field(string)
    member_id: str | None = field(string, since=9, nullable=9, default=None, ignorable=True)
    member_epoch: int = field(int32, since=9, default=-1, ignorable=True)
    topics: Sequence[OffsetFetchRequestTopics] | None = field(
        Array(OffsetFetchRequestTopics), nullable=0
    )


class OffsetFetchRequest(Message, api_key=9, versions=(0, 10), flexible=6):
    group_id: str = field(string, until=7)
    topics: Sequence[OffsetFetchRequestTopic] | None = field(
        Array(OffsetFetchRequestTopic), until=7, nullable=2
    )
    groups: Sequence[OffsetFetchRequestGroup] = field(Array(OffsetFetchRequestGroup), since=8)
    require_stable: bool = field(boolean, since=7)


class OffsetFetchResponsePartition(Struct):
    partition_index: int = field(int32)
    committed_offset: int = field(int64)
    committed_leader_epoch: int = field(int32, since=5, default=-1, ignorable=True)
    metadata: str | None = field(string, nullable=0)
    error_code: int = field(int16)


class OffsetFetchResponseTopic(Struct):
    name: str = field(string)
    partitions: Sequence[OffsetFetchResponsePartition] = field(Array(OffsetFetchResponsePartition))


class OffsetFetchResponsePartitions(Struct):
    partition_index: int = field(int32)
    committed_offset: int = field(int64)
    committed_leader_epoch: int = field(int32, default=-1)
    metadata: str | None = field(string, nullable=0)
    error_code: int = field(int16)


class OffsetFetchResponseTopics(Struct):
    name: str = field(string, until=9, ignorable=True)
    topic_id: Uuid = field(uuid, since=10, ignorable=True)
    partitions: Sequence[OffsetFetchResponsePartitions] = field(
        Array(OffsetFetchResponsePartitions)
    )


class OffsetFetchResponseGroup(Struct):
    group_id: str = field(string)
    topics: Sequence[OffsetFetchResponseTopics] = field(Array(OffsetFetchResponseTopics))
    error_code: int = field(int16)


class OffsetFetchResponse(Message, api_key=9, versions=(0, 10), flexible=6):
    throttle_time_ms: int = field(int32, since=3, ignorable=True)
    topics: Sequence[OffsetFetchResponseTopic] = field(Array(OffsetFetchResponseTopic), until=7)
    error_code: int = field(int16, since=2, until=7, ignorable=True)
    groups: Sequence[OffsetFetchResponseGroup] = field(Array(OffsetFetchResponseGroup), since=8)
