"""InitializeShareGroupState, API key 83: v0, flexible."""

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
    state_epoch: int = field(int32)
    start_offset: int = field(int64)


class InitializeStateData(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[PartitionData] = field(Array(PartitionData))


class InitializeShareGroupStateRequest(Message, api_key=83, versions=(0, 0), flexible=0):
    group_id: str = field(string)
    topics: Sequence[InitializeStateData] = field(Array(InitializeStateData))


class PartitionResult(Struct):
    partition: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)


class InitializeStateResult(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[PartitionResult] = field(Array(PartitionResult))


class InitializeShareGroupStateResponse(Message, api_key=83, versions=(0, 0), flexible=0):
    results: Sequence[InitializeStateResult] = field(Array(InitializeStateResult))
