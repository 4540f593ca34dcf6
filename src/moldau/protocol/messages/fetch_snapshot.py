"""FetchSnapshot, API key 59: v0-v1, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Buffer,
    Message,
    Struct,
    Uuid,
    field,
    int16,
    int32,
    int64,
    records,
    string,
    uint16,
    uuid,
)


class SnapshotId(Struct):
    end_offset: int = field(int64)
    epoch: int = field(int32)


class FetchSnapshotRequestPartitionSnapshot(Struct):
    partition: int = field(int32)
    current_leader_epoch: int = field(int32)
    snapshot_id: SnapshotId = field(SnapshotId)
    position: int = field(int64)
    replica_directory_id: Uuid = field(uuid, since=1, tag=0, ignorable=True)


class FetchSnapshotRequestTopicSnapshot(Struct):
    name: str = field(string)
    partitions: Sequence[FetchSnapshotRequestPartitionSnapshot] = field(
        Array(FetchSnapshotRequestPartitionSnapshot)
    )


class FetchSnapshotRequest(Message, api_key=59, versions=(0, 1), flexible=0):
    cluster_id: str | None = field(string, nullable=0, tag=0, default=None)
    replica_id: int = field(int32, default=-1)
    max_bytes: int = field(int32, default=0x7FFFFFFF)
    topics: Sequence[FetchSnapshotRequestTopicSnapshot] = field(
        Array(FetchSnapshotRequestTopicSnapshot)
    )


class LeaderIdAndEpoch(Struct):
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)


class FetchSnapshotResponsePartitionSnapshot(Struct):
    index: int = field(int32)
    error_code: int = field(int16)
    snapshot_id: SnapshotId = field(SnapshotId)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch, tag=0)
    size: int = field(int64)
    position: int = field(int64)
    unaligned_records: Buffer = field(records, default=b"")


class FetchSnapshotResponseTopicSnapshot(Struct):
    name: str = field(string)
    partitions: Sequence[FetchSnapshotResponsePartitionSnapshot] = field(
        Array(FetchSnapshotResponsePartitionSnapshot)
    )


class NodeEndpoint(Struct):
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(uint16)


class FetchSnapshotResponse(Message, api_key=59, versions=(0, 1), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    topics: Sequence[FetchSnapshotResponseTopicSnapshot] = field(
        Array(FetchSnapshotResponseTopicSnapshot)
    )
    node_endpoints: Sequence[NodeEndpoint] = field(Array(NodeEndpoint), since=1, tag=0)
