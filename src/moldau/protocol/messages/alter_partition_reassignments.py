"""AlterPartitionReassignments, API key 45: v0-v1, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, boolean, field, int16, int32, string


class ReassignablePartition(Struct):
    partition_index: int = field(int32)
    replicas: Sequence[int] | None = field(Array(int32), nullable=0, default=None)


class ReassignableTopic(Struct):
    name: str = field(string)
    partitions: Sequence[ReassignablePartition] = field(Array(ReassignablePartition))


class AlterPartitionReassignmentsRequest(Message, api_key=45, versions=(0, 1), flexible=0):
    timeout_ms: int = field(int32, default=60000)
    allow_replication_factor_change: bool = field(boolean, since=1, default=True)
    topics: Sequence[ReassignableTopic] = field(Array(ReassignableTopic))


class ReassignablePartitionResponse(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)


class ReassignableTopicResponse(Struct):
    name: str = field(string)
    partitions: Sequence[ReassignablePartitionResponse] = field(
        Array(ReassignablePartitionResponse)
    )


class AlterPartitionReassignmentsResponse(Message, api_key=45, versions=(0, 1), flexible=0):
    throttle_time_ms: int = field(int32)
    allow_replication_factor_change: bool = field(boolean, since=1, default=True, ignorable=True)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)
    responses: Sequence[ReassignableTopicResponse] = field(Array(ReassignableTopicResponse))
