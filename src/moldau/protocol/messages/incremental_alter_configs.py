"""IncrementalAlterConfigs, API key 44: v0-v1, flexible from v1."""

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
    config_operation: int = field(int8)
    value: str | None = field(string, nullable=0)


class AlterConfigsResource(Struct):
    resource_type: int = field(int8)
    resource_name: str = field(string)
    configs: Sequence[AlterableConfig] = field(Array(AlterableConfig))


class IncrementalAlterConfigsRequest(Message, api_key=44, versions=(0, 1), flexible=1):
    resources: Sequence[AlterConfigsResource] = field(Array(AlterConfigsResource))
    validate_only: bool = field(boolean)


class AlterConfigsResourceResponse(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)
    resource_type: int = field(int8)
    resource_name: str = field(string)


class IncrementalAlterConfigsResponse(Message, api_key=44, versions=(0, 1), flexible=1):
    throttle_time_ms: int = field(int32)
    responses: Sequence[AlterConfigsResourceResponse] = field(Array(AlterConfigsResourceResponse))
