"""JoinGroup, API key 11: v0-v9, flexible from v6."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    blob,
    boolean,
    field,
    int16,
    int32,
    string,
)


class JoinGroupRequestProtocol(Struct):
    name: str = field(string)
    metadata: bytes = field(blob)


class JoinGroupRequest(Message, api_key=11, versions=(0, 9), flexible=6):
    group_id: str = field(string)
    session_timeout_ms: int = field(int32)
    rebalance_timeout_ms: int = field(int32, since=1, default=-1, ignorable=True)
    member_id: str = field(string)
    group_instance_id: str | None = field(string, since=5, nullable=5, default=None)
    protocol_type: str = field(string)
    protocols: Sequence[JoinGroupRequestProtocol] = field(Array(JoinGroupRequestProtocol))
    reason: str | None = field(string, since=8, nullable=8, default=None, ignorable=True)


class JoinGroupResponseMember(Struct):
    member_id: str = field(string)
    group_instance_id: str | None = field(string, since=5, nullable=5, default=None, ignorable=True)
    metadata: bytes = field(blob)


class JoinGroupResponse(Message, api_key=11, versions=(0, 9), flexible=6):
    throttle_time_ms: int = field(int32, since=2, ignorable=True)
    error_code: int = field(int16)
    generation_id: int = field(int32, default=-1)
    protocol_type: str | None = field(string, since=7, nullable=7, default=None, ignorable=True)
    protocol_name: str | None = field(string, nullable=7)
    leader: str = field(string)
    skip_assignment: bool = field(boolean, since=9)
    member_id: str = field(string)
    members: Sequence[JoinGroupResponseMember] = field(Array(JoinGroupResponseMember))
