"""Records in __remote_log_metadata."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    Uuid,
    blob,
    boolean,
    field,
    int8,
    int32,
    int64,
    string,
    uuid,
)


class TopicIdPartitionEntry(Struct):
    name: str = field(string)
    id: Uuid = field(uuid)
    partition: int = field(int32)


class RemoteLogSegmentIdEntry(Struct):
    topic_id_partition: TopicIdPartitionEntry = field(TopicIdPartitionEntry)
    id: Uuid = field(uuid)


class SegmentLeaderEpochEntry(Struct):
    leader_epoch: int = field(int32)
    offset: int = field(int64)


class RemoteLogSegmentMetadataRecord(Message, api_key=0, versions=(0, 0), flexible=0):
    remote_log_segment_id: RemoteLogSegmentIdEntry = field(RemoteLogSegmentIdEntry)
    start_offset: int = field(int64)
    end_offset: int = field(int64)
    broker_id: int = field(int32)
    max_timestamp_ms: int = field(int64)
    event_timestamp_ms: int = field(int64)
    segment_leader_epochs: Sequence[SegmentLeaderEpochEntry] = field(Array(SegmentLeaderEpochEntry))
    segment_size_in_bytes: int = field(int32)
    custom_metadata: bytes | None = field(blob, nullable=0, default=None)
    remote_log_segment_state: int = field(int8)
    txn_index_empty: bool = field(boolean, tag=0)


class RemoteLogSegmentMetadataUpdateRecord(Message, api_key=1, versions=(0, 0), flexible=0):
    remote_log_segment_id: RemoteLogSegmentIdEntry = field(RemoteLogSegmentIdEntry)
    broker_id: int = field(int32)
    event_timestamp_ms: int = field(int64)
    custom_metadata: bytes | None = field(blob, nullable=0, default=None)
    remote_log_segment_state: int = field(int8)


class RemotePartitionDeleteMetadataRecord(Message, api_key=2, versions=(0, 0), flexible=0):
    topic_id_partition: TopicIdPartitionEntry = field(TopicIdPartitionEntry)
    broker_id: int = field(int32)
    event_timestamp_ms: int = field(int64)
    remote_partition_delete_state: int = field(int8)


class RemoteLogSegmentMetadataSnapshotRecord(Message, api_key=3, versions=(0, 0), flexible=0):
    segment_id: Uuid = field(uuid)
    start_offset: int = field(int64)
    end_offset: int = field(int64)
    broker_id: int = field(int32)
    max_timestamp_ms: int = field(int64)
    event_timestamp_ms: int = field(int64)
    segment_leader_epochs: Sequence[SegmentLeaderEpochEntry] = field(Array(SegmentLeaderEpochEntry))
    segment_size_in_bytes: int = field(int32)
    custom_metadata: bytes | None = field(blob, nullable=0, default=None)
    remote_log_segment_state: int = field(int8)
    txn_index_empty: bool = field(boolean, tag=0)
