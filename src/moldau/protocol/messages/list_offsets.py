"""ListOffsets, API key 2: v0-v11, flexible from v6, v0 as in Kafka 3.9."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, field, int8, int16, int32, int64, string


class ListOffsetsPartition(Struct):
    partition_index: int = field(int32)
    current_leader_epoch: int = field(int32, since=4, default=-1, ignorable=True)
    timestamp: int = field(int64)
    max_num_offsets: int = field(int32, until=0, default=1)


class ListOffsetsTopic(Struct):
    name: str = field(string)
    partitions: Sequence[ListOffsetsPartition] = field(Array(ListOffsetsPartition))


class ListOffsetsRequest(Message, api_key=2, versions=(0, 11), flexible=6):
    replica_id: int = field(int32)
    isolation_level: int = field(int8, since=2)
    topics: Sequence[ListOffsetsTopic] = field(Array(ListOffsetsTopic))
    timeout_ms: int = field(int32, since=10, ignorable=True)


class ListOffsetsPartitionResponse(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    old_style_offsets: Sequence[int] = field(Array(int64), until=0)
    timestamp: int = field(int64, since=1, default=-1)
    offset: int = field(int64, since=1, default=-1)
    leader_epoch: int = field(int32, since=4, default=-1)


class ListOffsetsTopicResponse(Struct):
    name: str = field(string)
    partitions: Sequence[ListOffsetsPartitionResponse] = field(Array(ListOffsetsPartitionResponse))


class ListOffsetsResponse(Message, api_key=2, versions=(0, 11), flexible=6):
    throttle_time_ms: int = field(int32, since=2, ignorable=True)
    topics: Sequence[ListOffsetsTopicResponse] = field(Array(ListOffsetsTopicResponse))
