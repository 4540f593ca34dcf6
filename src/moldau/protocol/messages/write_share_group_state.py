"""WriteShareGroupState, API key 85: v0-v1, flexible."""

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


class StateBatch(Struct):
    first_offset: int = field(int64)
    last_offset: int = field(int64)
    delivery_state: int = field(int8)
    delivery_count: int = field(int16)


class PartitionData(Struct):
    partition: int = field(int32)
    state_epoch: int = field(int32)
    leader_epoch: int = field(int32)
    start_offset: int = field(int64)
    delivery_complete_count: int = field(int32, since=1, default=-1, ignorable=True)
    state_batches: Sequence[StateBatch] = field(Array(StateBatch))


class WriteStateData(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[PartitionData] = field(Array(PartitionData))


class WriteShareGroupStateRequest(Message, api_key=85, versions=(0, 1), flexible=0):
    group_id: str = field(string)
    topics: Sequence[WriteStateData] = field(Array(WriteStateData))


class PartitionResult(Struct):
    partition: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)


class WriteStateResult(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[PartitionResult] = field(Array(PartitionResult))


class WriteShareGroupStateResponse(Message, api_key=85, versions=(0, 1), flexible=0):
    results: Sequence[WriteStateResult] = field(Array(WriteStateResult))
