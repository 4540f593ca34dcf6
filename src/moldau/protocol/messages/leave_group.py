"""LeaveGroup, API key 13: v0-v5, flexible from v4."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, field, int16, int32, string


class MemberIdentity(Struct):
    member_id: str = field(string)
    group_instance_id: str | None = field(string, nullable=0, default=None)
    reason: str | None = field(string, since=5, nullable=5, default=None, ignorable=True)


class LeaveGroupRequest(Message, api_key=13, versions=(0, 5), flexible=4):
    group_id: str = field(string)
    member_id: str = field(string, until=2)
    members: Sequence[MemberIdentity] = field(Array(MemberIdentity), since=3)


class MemberResponse(Struct):
    member_id: str = field(string)
    group_instance_id: str | None = field(string, nullable=0)
    error_code: int = field(int16)


class LeaveGroupResponse(Message, api_key=13, versions=(0, 5), flexible=4):
    throttle_time_ms: int = field(int32, since=1, ignorable=True)
    error_code: int = field(int16)
    members: Sequence[MemberResponse] = field(Array(MemberResponse), since=3)
