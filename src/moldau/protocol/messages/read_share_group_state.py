"""ReadShareGroupState, API key 84: v0, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    Uuid,
    field,
    int8,
    int16,
    int32,
    int64,
    string,
    uuid,
)


class PartitionData(Struct):
    partition: int = field(int32)
    leader_epoch: int = field(int32)


class ReadStateData(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[PartitionData] = field(Array(PartitionData))


class ReadShareGroupStateRequest(Message, api_key=84, versions=(0, 0), flexible=0):
    group_id: str = field(string)
    topics: Sequence[ReadStateData] = field(Array(ReadStateData))


class StateBatch(Struct):
    first_offset: int = field(int64)
    last_offset: int = field(int64)
    delivery_state: int = field(int8)
    delivery_count: int = field(int16)


class PartitionResult(Struct):
    partition: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)
    state_epoch: int = field(int32)
    start_offset: int = field(int64)
    state_batches: Sequence[StateBatch] = field(Array(StateBatch))


class ReadStateResult(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[PartitionResult] = field(Array(PartitionResult))


class ReadShareGroupStateResponse(Message, api_key=84, versions=(0, 0), flexible=0):
    results: Sequence[ReadStateResult] = field(Array(ReadStateResult))
