"""DeleteGroups, API key 42: v0-v3, flexible from v2."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, field, int16, int32, string


class DeleteGroupsRequest(Message, api_key=42, versions=(0, 3), flexible=2):
    groups_names: Sequence[str] = field(Array(string))


class DeletableGroupResult(Struct):
    group_id: str = field(string)
    error_code: int = field(int16)
    error_message: str | None = field(string, since=3, nullable=3, default=None, ignorable=True)


class DeleteGroupsResponse(Message, api_key=42, versions=(0, 3), flexible=2):
    throttle_time_ms: int = field(int32)
    results: Sequence[DeletableGroupResult] = field(Array(DeletableGroupResult))
