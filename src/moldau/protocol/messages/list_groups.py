"""ListGroups, API key 16: v0-v5, flexible from v3."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, field, int16, int32, string


class ListGroupsRequest(Message, api_key=16, versions=(0, 5), flexible=3):
    states_filter: Sequence[str] = field(Array(string), since=4)
    types_filter: Sequence[str] = field(Array(string), since=5)


class ListedGroup(Struct):
    group_id: str = field(string)
    protocol_type: str = field(string)
    group_state: str = field(string, since=4, ignorable=True)
    group_type: str = field(string, since=5, ignorable=True)


class ListGroupsResponse(Message, api_key=16, versions=(0, 5), flexible=3):
    throttle_time_ms: int = field(int32, since=1, ignorable=True)
    error_code: int = field(int16)
    groups: Sequence[ListedGroup] = field(Array(ListedGroup))
