"""ShareFetch, API key 78: v1-v2, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Buffer,
    Message,
    Struct,
    Uuid,
    boolean,
    field,
    int8,
    int16,
    int32,
    int64,
    records,
    string,
    uuid,
)


class AcknowledgementBatch(Struct):
    first_offset: int = field(int64)
    last_offset: int = field(int64)
    acknowledge_types: Sequence[int] = field(Array(int8))


class FetchPartition(Struct):
    partition_index: int = field(int32)
    acknowledgement_batches: Sequence[AcknowledgementBatch] = field(Array(AcknowledgementBatch))


class FetchTopic(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[FetchPartition] = field(Array(FetchPartition))


class ForgottenTopic(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[int] = field(Array(int32))


class ShareFetchRequest(Message, api_key=78, versions=(1, 2), flexible=0):
    group_id: str | None = field(string, nullable=0, default=None)
    member_id: str | None = field(string, nullable=0)
    share_session_epoch: int = field(int32)
    max_wait_ms: int = field(int32)
    min_bytes: int = field(int32)
    max_bytes: int = field(int32, default=0x7FFFFFFF)
    max_records: int = field(int32)
    batch_size: int = field(int32)
    share_acquire_mode: int = field(int8, since=2, ignorable=True)
    is_renew_ack: bool = field(boolean, since=2)
    topics: Sequence[FetchTopic] = field(Array(FetchTopic))
    forgotten_topics_data: Sequence[ForgottenTopic] = field(Array(ForgottenTopic))


class LeaderIdAndEpoch(Struct):
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)


class AcquiredRecords(Struct):
    first_offset: int = field(int64)
    last_offset: int = field(int64)
    delivery_count: int = field(int16)


class PartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)
    acknowledge_error_code: int = field(int16)
    acknowledge_error_message: str | None = field(string, nullable=0, default=None)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch)
    records: Buffer = field(records, default=b"")
    acquired_records: Sequence[AcquiredRecords] = field(Array(AcquiredRecords))


class ShareFetchableTopicResponse(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[PartitionData] = field(Array(PartitionData))


class NodeEndpoint(Struct):
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    rack: str | None = field(string, nullable=0, default=None)


class ShareFetchResponse(Message, api_key=78, versions=(1, 2), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)
    acquisition_lock_timeout_ms: int = field(int32)
    responses: Sequence[ShareFetchableTopicResponse] = field(Array(ShareFetchableTopicResponse))
    node_endpoints: Sequence[NodeEndpoint] = field(Array(NodeEndpoint))
