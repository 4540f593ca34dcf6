"""DeleteShareGroupState, API key 86: v0, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, Uuid, field, int16, int32, string, uuid


class PartitionData(Struct):
    partition: int = field(int32)


class DeleteStateData(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[PartitionData] = field(Array(PartitionData))


class DeleteShareGroupStateRequest(Message, api_key=86, versions=(0, 0), flexible=0):
    group_id: str = field(string)
    topics: Sequence[DeleteStateData] = field(Array(DeleteStateData))


class PartitionResult(Struct):
    partition: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)


class DeleteStateResult(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[PartitionResult] = field(Array(PartitionResult))


class DeleteShareGroupStateResponse(Message, api_key=86, versions=(0, 0), flexible=0):
    results: Sequence[DeleteStateResult] = field(Array(DeleteStateResult))
