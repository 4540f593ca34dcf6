"""CreatePartitions, API key 37: v0-v3, flexible from v2."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, boolean, field, int16, int32, string


class CreatePartitionsAssignment(Struct):
    broker_ids: Sequence[int] = field(Array(int32))


class CreatePartitionsTopic(Struct):
    name: str = field(string)
    count: int = field(int32)
    assignments: Sequence[CreatePartitionsAssignment] | None = field(
        Array(CreatePartitionsAssignment), nullable=0
    )


class CreatePartitionsRequest(Message, api_key=37, versions=(0, 3), flexible=2):
    topics: Sequence[CreatePartitionsTopic] = field(Array(CreatePartitionsTopic))
    timeout_ms: int = field(int32)
    validate_only: bool = field(boolean)


class CreatePartitionsTopicResult(Struct):
    name: str = field(string)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)


class CreatePartitionsResponse(Message, api_key=37, versions=(0, 3), flexible=2):
    throttle_time_ms: int = field(int32)
    results: Sequence[CreatePartitionsTopicResult] = field(Array(CreatePartitionsTopicResult))
