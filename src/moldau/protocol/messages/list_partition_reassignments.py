"""ListPartitionReassignments, API key 46: v0, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, field, int16, int32, string


class ListPartitionReassignmentsTopics(Struct):
    name: str = field(string)
    partition_indexes: Sequence[int] = field(Array(int32))


class ListPartitionReassignmentsRequest(Message, api_key=46, versions=(0, 0), flexible=0):
    timeout_ms: int = field(int32, default=60000)
    topics: Sequence[ListPartitionReassignmentsTopics] | None = field(
        Array(ListPartitionReassignmentsTopics), nullable=0, default=None
    )


class OngoingPartitionReassignment(Struct):
    partition_index: int = field(int32)
    replicas: Sequence[int] = field(Array(int32))
    adding_replicas: Sequence[int] = field(Array(int32))
    removing_replicas: Sequence[int] = field(Array(int32))


class OngoingTopicReassignment(Struct):
    name: str = field(string)
    partitions: Sequence[OngoingPartitionReassignment] = field(Array(OngoingPartitionReassignment))


class ListPartitionReassignmentsResponse(Message, api_key=46, versions=(0, 0), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)
    topics: Sequence[OngoingTopicReassignment] = field(Array(OngoingTopicReassignment))
