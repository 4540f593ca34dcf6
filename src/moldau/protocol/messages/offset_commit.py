"""OffsetCommit, API key 8: v0-v10, flexible from v8, v0-v1 as in Kafka 3.9."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    Uuid,
    field,
    int16,
    int32,
    int64,
    string,
    uuid,
)


class OffsetCommitRequestPartition(Struct):
    partition_index: int = field(int32)
    committed_offset: int = field(int64)
    commit_timestamp: int = field(int64, since=1, until=1, default=-1)
    committed_leader_epoch: int = field(int32, since=6, default=-1, ignorable=True)
    committed_metadata: str | None = field(string, nullable=0)


class OffsetCommitRequestTopic(Struct):
    name: str = field(string, until=9, ignorable=True)
    topic_id: Uuid = field(uuid, since=10, ignorable=True)
    partitions: Sequence[OffsetCommitRequestPartition] = field(Array(OffsetCommitRequestPartition))


class OffsetCommitRequest(Message, api_key=8, versions=(0, 10), flexible=8):
    group_id: str = field(string)
    generation_id_or_member_epoch: int = field(int32, since=1, default=-1, ignorable=True)
    member_id: str = field(string, since=1, ignorable=True)
    group_instance_id: str | None = field(string, since=7, nullable=7, default=None)
    retention_time_ms: int = field(int64, since=2, until=4, default=-1, ignorable=True)
    topics: Sequence[OffsetCommitRequestTopic] = field(Array(OffsetCommitRequestTopic))


class OffsetCommitResponsePartition(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)


class OffsetCommitResponseTopic(Struct):
    name: str = field(string, until=9, ignorable=True)
    topic_id: Uuid = field(uuid, since=10, ignorable=True)
    partitions: Sequence[OffsetCommitResponsePartition] = field(
        Array(OffsetCommitResponsePartition)
    )


class OffsetCommitResponse(Message, api_key=8, versions=(0, 10), flexible=8):
    throttle_time_ms: int = field(int32, since=3, ignorable=True)
    topics: Sequence[OffsetCommitResponseTopic] = field(Array(OffsetCommitResponseTopic))
