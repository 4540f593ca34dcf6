"""DeleteShareGroupOffsets, API key 92: v0, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, Uuid, field, int16, int32, string, uuid


class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = field(string)


class DeleteShareGroupOffsetsRequest(Message, api_key=92, versions=(0, 0), flexible=0):
    group_id: str = field(string)
    topics: Sequence[DeleteShareGroupOffsetsRequestTopic] = field(
        Array(DeleteShareGroupOffsetsRequestTopic)
    )


class DeleteShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = field(string)
    topic_id: Uuid = field(uuid)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)


class DeleteShareGroupOffsetsResponse(Message, api_key=92, versions=(0, 0), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)
    responses: Sequence[DeleteShareGroupOffsetsResponseTopic] = field(
        Array(DeleteShareGroupOffsetsResponseTopic)
    )
