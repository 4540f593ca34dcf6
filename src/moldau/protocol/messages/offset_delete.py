"""OffsetDelete, API key 47: v0."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, field, int16, int32, string


class OffsetDeleteRequestPartition(Struct):
    partition_index: int = field(int32)


class OffsetDeleteRequestTopic(Struct):
    name: str = field(string)
    partitions: Sequence[OffsetDeleteRequestPartition] = field(Array(OffsetDeleteRequestPartition))


class OffsetDeleteRequest(Message, api_key=47, versions=(0, 0)):
    group_id: str = field(string)
    topics: Sequence[OffsetDeleteRequestTopic] = field(Array(OffsetDeleteRequestTopic))


class OffsetDeleteResponsePartition(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)


class OffsetDeleteResponseTopic(Struct):
    name: str = field(string)
    partitions: Sequence[OffsetDeleteResponsePartition] = field(
        Array(OffsetDeleteResponsePartition)
    )


class OffsetDeleteResponse(Message, api_key=47, versions=(0, 0)):
    error_code: int = field(int16)
    throttle_time_ms: int = field(int32)
    topics: Sequence[OffsetDeleteResponseTopic] = field(Array(OffsetDeleteResponseTopic))
