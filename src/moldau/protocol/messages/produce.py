"""Produce, API key 0: v0-v13, flexible from v9, v0-v2 as in Kafka 3.9."""

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
    uuid,
)


class PartitionProduceData(Struct):
    index: int = field(int32)
    records: Buffer | None = field(records, nullable=0)


class TopicProduceData(Struct):
    name: str = field(string, until=12, ignorable=True)
    topic_id: Uuid = field(uuid, since=13, ignorable=True)
    partition_data: Sequence[PartitionProduceData] = field(Array(PartitionProduceData))


class ProduceRequest(Message, api_key=0, versions=(0, 13), flexible=9):
    transactional_id: str | None = field(string, since=3, nullable=3, default=None)
    acks: int = field(int16)
    timeout_ms: int = field(int32)
    topic_data: Sequence[TopicProduceData] = field(Array(TopicProduceData))


class BatchIndexAndErrorMessage(Struct):
    batch_index: int = field(int32)
    batch_index_error_message: str | None = field(string, nullable=0, default=None)


class LeaderIdAndEpoch(Struct):
    leader_id: int = field(int32, default=-1)
    leader_epoch: int = field(int32, default=-1)


class PartitionProduceResponse(Struct):
    index: int = field(int32)
    error_code: int = field(int16)
    base_offset: int = field(int64)
    log_append_time_ms: int = field(int64, since=2, default=-1, ignorable=True)
    log_start_offset: int = field(int64, since=5, default=-1, ignorable=True)
    record_errors: Sequence[BatchIndexAndErrorMessage] = field(
        Array(BatchIndexAndErrorMessage), since=8, ignorable=True
    )
    error_message: str | None = field(string, since=8, nullable=8, default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch, since=10, tag=0)


class TopicProduceResponse(Struct):
    name: str = field(string, until=12, ignorable=True)
    topic_id: Uuid = field(uuid, since=13, ignorable=True)
    partition_responses: Sequence[PartitionProduceResponse] = field(Array(PartitionProduceResponse))


class NodeEndpoint(Struct):
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    rack: str | None = field(string, nullable=0, default=None)


class ProduceResponse(Message, api_key=0, versions=(0, 13), flexible=9):
    responses: Sequence[TopicProduceResponse] = field(Array(TopicProduceResponse))
    throttle_time_ms: int = field(int32, since=1, ignorable=True)
    node_endpoints: Sequence[NodeEndpoint] = field(Array(NodeEndpoint), since=10, tag=0)
