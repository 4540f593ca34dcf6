"""DeleteTopics, API key 20: v0-v6, flexible from v4, v0 as in Kafka 3.9."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, Uuid, field, int16, int32, string, uuid


class DeleteTopicState(Struct):
    name: str | None = field(string, nullable=0, default=None)
    topic_id: Uuid = field(uuid)


class DeleteTopicsRequest(Message, api_key=20, versions=(0, 6), flexible=4):
    topics: Sequence[DeleteTopicState] = field(Array(DeleteTopicState), since=6)
    topic_names: Sequence[str] = field(Array(string), until=5, ignorable=True)
    timeout_ms: int = field(int32)


class DeletableTopicResult(Struct):
    name: str | None = field(string, nullable=6)
    topic_id: Uuid = field(uuid, since=6, ignorable=True)
    error_code: int = field(int16)
    error_message: str | None = field(string, since=5, nullable=5, default=None, ignorable=True)


class DeleteTopicsResponse(Message, api_key=20, versions=(0, 6), flexible=4):
    throttle_time_ms: int = field(int32, since=1, ignorable=True)
    responses: Sequence[DeletableTopicResult] = field(Array(DeletableTopicResult))
