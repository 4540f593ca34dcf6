"""AlterShareGroupOffsets, API key 91: v0, flexible."""

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


class AlterShareGroupOffsetsRequestPartition(Struct):
    partition_index: int = field(int32)
    start_offset: int = field(int64)


class AlterShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = field(string)
    partitions: Sequence[AlterShareGroupOffsetsRequestPartition] = field(
        Array(AlterShareGroupOffsetsRequestPartition)
    )


class AlterShareGroupOffsetsRequest(Message, api_key=91, versions=(0, 0), flexible=0):
    group_id: str = field(string)
    topics: Sequence[AlterShareGroupOffsetsRequestTopic] = field(
        Array(AlterShareGroupOffsetsRequestTopic)
    )


class AlterShareGroupOffsetsResponsePartition(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)


class AlterShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = field(string)
    topic_id: Uuid = field(uuid)
    partitions: Sequence[AlterShareGroupOffsetsResponsePartition] = field(
        Array(AlterShareGroupOffsetsResponsePartition)
    )


class AlterShareGroupOffsetsResponse(Message, api_key=91, versions=(0, 0), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)
    responses: Sequence[AlterShareGroupOffsetsResponseTopic] = field(
        Array(AlterShareGroupOffsetsResponseTopic)
    )
