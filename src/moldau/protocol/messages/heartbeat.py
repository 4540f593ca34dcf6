"""Heartbeat, API key 12: v0-v4, flexible from v4."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from moldau.protocol.schema import Message, field, int16, int32, string


class HeartbeatRequest(Message, api_key=12, versions=(0, 4), flexible=4):
    group_id: str = field(string)
    generation_id: int = field(int32)
    member_id: str = field(string)
    group_instance_id: str | None = field(string, since=3, nullable=3, default=None)


class HeartbeatResponse(Message, api_key=12, versions=(0, 4), flexible=4):
    throttle_time_ms: int = field(int32, since=1, ignorable=True)
    error_code: int = field(int16)
