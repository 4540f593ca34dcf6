"""AlterConfigs, API key 33: v0-v2, flexible from v2."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    boolean,
    field,
    int8,
    int16,
    int32,
    string,
)


class AlterableConfig(Struct):
    name: str = field(string)
    value: str | None = field(string, nullable=0)


class AlterConfigsResource(Struct):
    resource_type: int = field(int8)
    resource_name: str = field(string)
    configs: Sequence[AlterableConfig] = field(Array(AlterableConfig))


class AlterConfigsRequest(Message, api_key=33, versions=(0, 2), flexible=2):
    resources: Sequence[AlterConfigsResource] = field(Array(AlterConfigsResource))
    validate_only: bool = field(boolean)


class AlterConfigsResourceResponse(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)
    resource_type: int = field(int8)
    resource_name: str = field(string)


class AlterConfigsResponse(Message, api_key=33, versions=(0, 2), flexible=2):
    throttle_time_ms: int = field(int32)
    responses: Sequence[AlterConfigsResourceResponse] = field(Array(AlterConfigsResourceResponse))
