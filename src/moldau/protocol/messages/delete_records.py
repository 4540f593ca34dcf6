"""DeleteRecords, API key 21: v0-v2, flexible from v2."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, field, int16, int32, int64, string


class DeleteRecordsPartition(Struct):
    partition_index: int = field(int32)
    offset: int = field(int64)


class DeleteRecordsTopic(Struct):
    name: str = field(string)
    partitions: Sequence[DeleteRecordsPartition] = field(Array(DeleteRecordsPartition))


class DeleteRecordsRequest(Message, api_key=21, versions=(0, 2), flexible=2):
    topics: Sequence[DeleteRecordsTopic] = field(Array(DeleteRecordsTopic))
    timeout_ms: int = field(int32)


class DeleteRecordsPartitionResult(Struct):
    partition_index: int = field(int32)
    low_watermark: int = field(int64)
    error_code: int = field(int16)


class DeleteRecordsTopicResult(Struct):
    name: str = field(string)
    partitions: Sequence[DeleteRecordsPartitionResult] = field(Array(DeleteRecordsPartitionResult))


class DeleteRecordsResponse(Message, api_key=21, versions=(0, 2), flexible=2):
    throttle_time_ms: int = field(int32)
    topics: Sequence[DeleteRecordsTopicResult] = field(Array(DeleteRecordsTopicResult))
