"""ShareAcknowledge, API key 79: v1-v2, flexible."""

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
    int64,
    string,
    uuid,
)


class AcknowledgementBatch(Struct):
    first_offset: int = field(int64)
    last_offset: int = field(int64)
    acknowledge_types: Sequence[int] = field(Array(int8))


class AcknowledgePartition(Struct):
    partition_index: int = field(int32)
    acknowledgement_batches: Sequence[AcknowledgementBatch] = field(Array(AcknowledgementBatch))


class AcknowledgeTopic(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[AcknowledgePartition] = field(Array(AcknowledgePartition))


class ShareAcknowledgeRequest(Message, api_key=79, versions=(1, 2), flexible=0):
    group_id: str | None = field(string, nullable=0, default=None)
    member_id: str | None = field(string, nullable=0)
    share_session_epoch: int = field(int32)
    is_renew_ack: bool = field(boolean, since=2)
    topics: Sequence[AcknowledgeTopic] = field(Array(AcknowledgeTopic))


class LeaderIdAndEpoch(Struct):
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)


class PartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch)


class ShareAcknowledgeTopicResponse(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[PartitionData] = field(Array(PartitionData))


class NodeEndpoint(Struct):
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    rack: str | None = field(string, nullable=0, default=None)


class ShareAcknowledgeResponse(Message, api_key=79, versions=(1, 2), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)
    acquisition_lock_timeout_ms: int = field(int32, since=2, ignorable=True)
    responses: Sequence[ShareAcknowledgeTopicResponse] = field(Array(ShareAcknowledgeTopicResponse))
    node_endpoints: Sequence[NodeEndpoint] = field(Array(NodeEndpoint))
