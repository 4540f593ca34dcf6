"""SyncGroup, API key 14: v0-v5, flexible from v4."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, blob, field, int16, int32, string


class SyncGroupRequestAssignment(Struct):
    member_id: str = field(string)
    assignment: bytes = field(blob)


class SyncGroupRequest(Message, api_key=14, versions=(0, 5), flexible=4):
    group_id: str = field(string)
    generation_id: int = field(int32)
    member_id: str = field(string)
    group_instance_id: str | None = field(string, since=3, nullable=3, default=None)
    protocol_type: str | None = field(string, since=5, nullable=5, default=None, ignorable=True)
    protocol_name: str | None = field(string, since=5, nullable=5, default=None, ignorable=True)
    assignments: Sequence[SyncGroupRequestAssignment] = field(Array(SyncGroupRequestAssignment))


class SyncGroupResponse(Message, api_key=14, versions=(0, 5), flexible=4):
    throttle_time_ms: int = field(int32, since=1, ignorable=True)
    error_code: int = field(int16)
    protocol_type: str | None = field(string, since=5, nullable=5, default=None, ignorable=True)
    protocol_name: str | None = field(string, since=5, nullable=5, default=None, ignorable=True)
    assignment: bytes = field(blob)
