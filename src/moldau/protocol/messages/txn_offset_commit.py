"""TxnOffsetCommit, API key 28: v0-v6, flexible from v3."""

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


class TxnOffsetCommitRequestPartition(Struct):
    partition_index: int = field(int32)
    committed_offset: int = field(int64)
    committed_leader_epoch: int = field(int32, since=2, default=-1, ignorable=True)
    committed_metadata: str | None = field(string, nullable=0)


class TxnOffsetCommitRequestTopic(Struct):
    name: str = field(string, until=5, ignorable=True)
    topic_id: Uuid = field(uuid, since=6, ignorable=True)
    partitions: Sequence[TxnOffsetCommitRequestPartition] = field(
        Array(TxnOffsetCommitRequestPartition)
    )


class TxnOffsetCommitRequest(Message, api_key=28, versions=(0, 6), flexible=3):
    transactional_id: str = field(string)
    group_id: str = field(string)
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    generation_id_or_member_epoch: int = field(int32, since=3, default=-1)
    member_id: str = field(string, since=3)
    group_instance_id: str | None = field(string, since=3, nullable=3, default=None)
    topics: Sequence[TxnOffsetCommitRequestTopic] = field(Array(TxnOffsetCommitRequestTopic))


class TxnOffsetCommitResponsePartition(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)


class TxnOffsetCommitResponseTopic(Struct):
    name: str = field(string, until=5, ignorable=True)
    topic_id: Uuid = field(uuid, since=6, ignorable=True)
    partitions: Sequence[TxnOffsetCommitResponsePartition] = field(
        Array(TxnOffsetCommitResponsePartition)
    )


class TxnOffsetCommitResponse(Message, api_key=28, versions=(0, 6), flexible=3):
    throttle_time_ms: int = field(int32)
    topics: Sequence[TxnOffsetCommitResponseTopic] = field(Array(TxnOffsetCommitResponseTopic))
