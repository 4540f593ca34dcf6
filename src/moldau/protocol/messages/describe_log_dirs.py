"""DescribeLogDirs, API key 35: v0-v5, flexible from v2, v0 as in Kafka 3.9."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    boolean,
    field,
    int16,
    int32,
    int64,
    string,
)


class DescribableLogDirTopic(Struct):
    topic: str = field(string)
    partitions: Sequence[int] = field(Array(int32))


class DescribeLogDirsRequest(Message, api_key=35, versions=(0, 5), flexible=2):
    topics: Sequence[DescribableLogDirTopic] | None = field(
        Array(DescribableLogDirTopic), nullable=0
    )


class DescribeLogDirsPartition(Struct):
    partition_index: int = field(int32)
    partition_size: int = field(int64)
    offset_lag: int = field(int64)
    is_future_key: bool = field(boolean)


class DescribeLogDirsTopic(Struct):
    name: str = field(string)
    partitions: Sequence[DescribeLogDirsPartition] = field(Array(DescribeLogDirsPartition))


class DescribeLogDirsResult(Struct):
    error_code: int = field(int16)
    log_dir: str = field(string)
    topics: Sequence[DescribeLogDirsTopic] = field(Array(DescribeLogDirsTopic))
    total_bytes: int = field(int64, since=4, default=-1, ignorable=True)
    usable_bytes: int = field(int64, since=4, default=-1, ignorable=True)
    is_cordoned: bool = field(boolean, since=5, ignorable=True)


class DescribeLogDirsResponse(Message, api_key=35, versions=(0, 5), flexible=2):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16, since=3, ignorable=True)
    results: Sequence[DescribeLogDirsResult] = field(Array(DescribeLogDirsResult))
