"""DeleteAcls, API key 31: v0-v3, flexible from v2, v0 as in Kafka 3.9."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, field, int8, int16, int32, string


class DeleteAclsFilter(Struct):
    resource_type_filter: int = field(int8)
    resource_name_filter: str | None = field(string, nullable=0)
    pattern_type_filter: int = field(int8, since=1, default=3)
    principal_filter: str | None = field(string, nullable=0)
    host_filter: str | None = field(string, nullable=0)
    operation: int = field(int8)
    permission_type: int = field(int8)


class DeleteAclsRequest(Message, api_key=31, versions=(0, 3), flexible=2):
    filters: Sequence[DeleteAclsFilter] = field(Array(DeleteAclsFilter))


class DeleteAclsMatchingAcl(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)
    resource_type: int = field(int8)
    resource_name: str = field(string)
    pattern_type: int = field(int8, since=1, default=3)
    principal: str = field(string)
    host: str = field(string)
    operation: int = field(int8)
    permission_type: int = field(int8)


class DeleteAclsFilterResult(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)
    matching_acls: Sequence[DeleteAclsMatchingAcl] = field(Array(DeleteAclsMatchingAcl))


class DeleteAclsResponse(Message, api_key=31, versions=(0, 3), flexible=2):
    throttle_time_ms: int = field(int32)
    filter_results: Sequence[DeleteAclsFilterResult] = field(Array(DeleteAclsFilterResult))
