"""ReadShareGroupStateSummary, API key 87: v0-v1, flexible."""

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


class PartitionData(Struct):
    partition: int = field(int32)
    leader_epoch: int = field(int32)


class ReadStateSummaryData(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[PartitionData] = field(Array(PartitionData))


class ReadShareGroupStateSummaryRequest(Message, api_key=87, versions=(0, 1), flexible=0):
    group_id: str = field(string)
    topics: Sequence[ReadStateSummaryData] = field(Array(ReadStateSummaryData))


class PartitionResult(Struct):
    partition: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)
    state_epoch: int = field(int32)
    leader_epoch: int = field(int32)
    start_offset: int = field(int64)
    delivery_complete_count: int = field(int32, since=1, default=-1, ignorable=True)


class ReadStateSummaryResult(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[PartitionResult] = field(Array(PartitionResult))


class ReadShareGroupStateSummaryResponse(Message, api_key=87, versions=(0, 1), flexible=0):
    results: Sequence[ReadStateSummaryResult] = field(Array(ReadStateSummaryResult))
