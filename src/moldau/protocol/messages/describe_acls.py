"""DescribeAcls, API key 29: v0-v3, flexible from v2, v0 as in Kafka 3.9."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, field, int8, int16, int32, string


class DescribeAclsRequest(Message, api_key=29, versions=(0, 3), flexible=2):
    resource_type_filter: int = field(int8)
    resource_name_filter: str | None = field(string, nullable=0)
    pattern_type_filter: int = field(int8, since=1, default=3)
    principal_filter: str | None = field(string, nullable=0)
    host_filter: str | None = field(string, nullable=0)
    operation: int = field(int8)
    permission_type: int = field(int8)


class AclDescription(Struct):
    principal: str = field(string)
    host: str = field(string)
    operation: int = field(int8)
    permission_type: int = field(int8)


class DescribeAclsResource(Struct):
    resource_type: int = field(int8)
    resource_name: str = field(string)
    pattern_type: int = field(int8, since=1, default=3)
    acls: Sequence[AclDescription] = field(Array(AclDescription))


class DescribeAclsResponse(Message, api_key=29, versions=(0, 3), flexible=2):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)
    resources: Sequence[DescribeAclsResource] = field(Array(DescribeAclsResource))
