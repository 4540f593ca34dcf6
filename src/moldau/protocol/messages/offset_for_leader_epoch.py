"""OffsetForLeaderEpoch, API key 23: v0-v4, flexible from v4, v0-v1 as in Kafka 3.9."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, field, int16, int32, int64, string


class OffsetForLeaderPartition(Struct):
    partition: int = field(int32)
    current_leader_epoch: int = field(int32, since=2, default=-1, ignorable=True)
    leader_epoch: int = field(int32)


class OffsetForLeaderTopic(Struct):
    topic: str = field(string)
    partitions: Sequence[OffsetForLeaderPartition] = field(Array(OffsetForLeaderPartition))


class OffsetForLeaderEpochRequest(Message, api_key=23, versions=(0, 4), flexible=4):
    replica_id: int = field(int32, since=3, default=-2, ignorable=True)
    topics: Sequence[OffsetForLeaderTopic] = field(Array(OffsetForLeaderTopic))


class EpochEndOffset(Struct):
    error_code: int = field(int16)
    partition: int = field(int32)
    leader_epoch: int = field(int32, since=1, default=-1, ignorable=True)
    end_offset: int = field(int64, default=-1)


class OffsetForLeaderTopicResult(Struct):
    topic: str = field(string)
    partitions: Sequence[EpochEndOffset] = field(Array(EpochEndOffset))


class OffsetForLeaderEpochResponse(Message, api_key=23, versions=(0, 4), flexible=4):
    throttle_time_ms: int = field(int32, since=2, ignorable=True)
    topics: Sequence[OffsetForLeaderTopicResult] = field(Array(OffsetForLeaderTopicResult))
