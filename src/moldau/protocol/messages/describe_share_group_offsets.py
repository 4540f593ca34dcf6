"""DescribeShareGroupOffsets, API key 90: v0-v1, flexible."""

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


class DescribeShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = field(string)
    partitions: Sequence[int] = field(Array(int32))


class DescribeShareGroupOffsetsRequestGroup(Struct):
    group_id: str = field(string)
    topics: Sequence[DescribeShareGroupOffsetsRequestTopic] | None = field(
        Array(DescribeShareGroupOffsetsRequestTopic), nullable=0
    )


class DescribeShareGroupOffsetsRequest(Message, api_key=90, versions=(0, 1), flexible=0):
    groups: Sequence[DescribeShareGroupOffsetsRequestGroup] = field(
        Array(DescribeShareGroupOffsetsRequestGroup)
    )


class DescribeShareGroupOffsetsResponsePartition(Struct):
    partition_index: int = field(int32)
    start_offset: int = field(int64)
    leader_epoch: int = field(int32)
    lag: int = field(int64, since=1, default=-1, ignorable=True)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)


class DescribeShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = field(string)
    topic_id: Uuid = field(uuid)
    partitions: Sequence[DescribeShareGroupOffsetsResponsePartition] = field(
        Array(DescribeShareGroupOffsetsResponsePartition)
    )


class DescribeShareGroupOffsetsResponseGroup(Struct):
    group_id: str = field(string)
    topics: Sequence[DescribeShareGroupOffsetsResponseTopic] = field(
        Array(DescribeShareGroupOffsetsResponseTopic)
    )
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)


class DescribeShareGroupOffsetsResponse(Message, api_key=90, versions=(0, 1), flexible=0):
    throttle_time_ms: int = field(int32)
    groups: Sequence[DescribeShareGroupOffsetsResponseGroup] = field(
        Array(DescribeShareGroupOffsetsResponseGroup)
    )
