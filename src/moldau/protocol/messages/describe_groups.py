"""DescribeGroups, API key 15: v0-v6, flexible from v5."""

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


class DescribeGroupsRequest(Message, api_key=15, versions=(0, 6), flexible=5):
    groups: Sequence[str] = field(Array(string))
    include_authorized_operations: bool = field(boolean, since=3)


class DescribedGroupMember(Struct):
    member_id: str = field(string)
    group_instance_id: str | None = field(string, since=4, nullable=4, default=None, ignorable=True)
    client_id: str = field(string)
    client_host: str = field(string)
    member_metadata: bytes = field(blob)
    member_assignment: bytes = field(blob)


class DescribedGroup(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, since=6, nullable=6, default=None)
    group_id: str = field(string)
    group_state: str = field(string)
    protocol_type: str = field(string)
    protocol_data: str = field(string)
    members: Sequence[DescribedGroupMember] = field(Array(DescribedGroupMember))
    authorized_operations: int = field(int32, since=3, default=-2147483648)


class DescribeGroupsResponse(Message, api_key=15, versions=(0, 6), flexible=5):
    throttle_time_ms: int = field(int32, since=1, ignorable=True)
    groups: Sequence[DescribedGroup] = field(Array(DescribedGroup))
