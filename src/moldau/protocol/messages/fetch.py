"""Fetch, API key 1: v4-v18, flexible from v12."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Buffer,
    Message,
    Struct,
    Uuid,
    field,
    int8,
    int16,
    int32,
    int64,
    records,
    string,
    uuid,
)


class ReplicaState(Struct):
    replica_id: int = field(int32, default=-1)
    replica_epoch: int = field(int64, default=-1)


class FetchPartition(Struct):
    partition: int = field(int32)
    current_leader_epoch: int = field(int32, since=9, default=-1, ignorable=True)
    fetch_offset: int = field(int64)
    last_fetched_epoch: int = field(int32, since=12, default=-1)
    log_start_offset: int = field(int64, since=5, default=-1, ignorable=True)
    partition_max_bytes: int = field(int32)
    replica_directory_id: Uuid = field(uuid, since=17, tag=0, ignorable=True)
    high_watermark: int = field(int64, since=18, tag=1, default=9223372036854775807, ignorable=True)


class FetchTopic(Struct):
    topic: str = field(string, until=12, ignorable=True)
    topic_id: Uuid = field(uuid, since=13, ignorable=True)
    partitions: Sequence[FetchPartition] = field(Array(FetchPartition))


class ForgottenTopic(Struct):
    topic: str = field(string, until=12, ignorable=True)
    topic_id: Uuid = field(uuid, since=13, ignorable=True)
    partitions: Sequence[int] = field(Array(int32))


class FetchRequest(Message, api_key=1, versions=(4, 18), flexible=12):
    cluster_id: str | None = field(
        string, since=12, nullable=12, tag=0, default=None, ignorable=True
    )
    replica_id: int = field(int32, until=14, default=-1)
    replica_state: ReplicaState = field(ReplicaState, since=15, tag=1)
    max_wait_ms: int = field(int32)
    min_bytes: int = field(int32)
    max_bytes: int = field(int32, default=0x7FFFFFFF)
    isolation_level: int = field(int8)
    session_id: int = field(int32, since=7, ignorable=True)
    session_epoch: int = field(int32, since=7, default=-1, ignorable=True)
    topics: Sequence[FetchTopic] = field(Array(FetchTopic))
    forgotten_topics_data: Sequence[ForgottenTopic] = field(Array(ForgottenTopic), since=7)
    rack_id: str = field(string, since=11, ignorable=True)


class EpochEndOffset(Struct):
    epoch: int = field(int32, default=-1)
    end_offset: int = field(int64, default=-1)


class LeaderIdAndEpoch(Struct):
    leader_id: int = field(int32, default=-1)
    leader_epoch: int = field(int32, default=-1)


class SnapshotId(Struct):
    end_offset: int = field(int64, default=-1)
    epoch: int = field(int32, default=-1)


class AbortedTransaction(Struct):
    producer_id: int = field(int64)
    first_offset: int = field(int64)


class PartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    high_watermark: int = field(int64)
    last_stable_offset: int = field(int64, default=-1)
    log_start_offset: int = field(int64, since=5, default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = field(EpochEndOffset, since=12, tag=0)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch, since=12, tag=1)
    snapshot_id: SnapshotId = field(SnapshotId, since=12, tag=2)
    aborted_transactions: Sequence[AbortedTransaction] | None = field(
        Array(AbortedTransaction), nullable=0
    )
    preferred_read_replica: int = field(int32, since=11, default=-1)
    records: Buffer | None = field(records, nullable=0)


class FetchableTopicResponse(Struct):
    topic: str = field(string, until=12, ignorable=True)
    topic_id: Uuid = field(uuid, since=13, ignorable=True)
    partitions: Sequence[PartitionData] = field(Array(PartitionData))


class NodeEndpoint(Struct):
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    rack: str | None = field(string, nullable=0, default=None)


class FetchResponse(Message, api_key=1, versions=(4, 18), flexible=12):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16, since=7, ignorable=True)
    session_id: int = field(int32, since=7)
    responses: Sequence[FetchableTopicResponse] = field(Array(FetchableTopicResponse))
    node_endpoints: Sequence[NodeEndpoint] = field(Array(NodeEndpoint), since=16, tag=0)
