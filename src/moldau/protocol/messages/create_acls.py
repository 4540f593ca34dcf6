"""CreateAcls, API key 30: v0-v3, flexible from v2, v0 as in Kafka 3.9."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, field, int8, int16, int32, string


class AclCreation(Struct):
    resource_type: int = field(int8)
    resource_name: str = field(string)
    resource_pattern_type: int = field(int8, since=1, default=3)
    principal: str = field(string)
    host: str = field(string)
    operation: int = field(int8)
    permission_type: int = field(int8)


class CreateAclsRequest(Message, api_key=30, versions=(0, 3), flexible=2):
    creations: Sequence[AclCreation] = field(Array(AclCreation))


class AclCreationResult(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)


class CreateAclsResponse(Message, api_key=30, versions=(0, 3), flexible=2):
    throttle_time_ms: int = field(int32)
    results: Sequence[AclCreationResult] = field(Array(AclCreationResult))
