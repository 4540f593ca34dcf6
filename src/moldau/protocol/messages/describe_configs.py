"""DescribeConfigs, API key 32: v0-v4, flexible from v4, v0 as in Kafka 3.9."""

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


class DescribeConfigsResource(Struct):
    resource_type: int = field(int8)
    resource_name: str = field(string)
    configuration_keys: Sequence[str] | None = field(Array(string), nullable=0)


class DescribeConfigsRequest(Message, api_key=32, versions=(0, 4), flexible=4):
    resources: Sequence[DescribeConfigsResource] = field(Array(DescribeConfigsResource))
    include_synonyms: bool = field(boolean, since=1)
    include_documentation: bool = field(boolean, since=3)


class DescribeConfigsSynonym(Struct):
    name: str = field(string)
    value: str | None = field(string, nullable=0)
    source: int = field(int8)


class DescribeConfigsResourceResult(Struct):
    name: str = field(string)
    value: str | None = field(string, nullable=0)
    read_only: bool = field(boolean)
    is_default: bool = field(boolean, until=0)
    config_source: int = field(int8, since=1, default=-1, ignorable=True)
    is_sensitive: bool = field(boolean)
    synonyms: Sequence[DescribeConfigsSynonym] = field(
        Array(DescribeConfigsSynonym), since=1, ignorable=True
    )
    config_type: int = field(int8, since=3, ignorable=True)
    documentation: str | None = field(string, since=3, nullable=3, ignorable=True)


class DescribeConfigsResult(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)
    resource_type: int = field(int8)
    resource_name: str = field(string)
    configs: Sequence[DescribeConfigsResourceResult] = field(Array(DescribeConfigsResourceResult))


class DescribeConfigsResponse(Message, api_key=32, versions=(0, 4), flexible=4):
    throttle_time_ms: int = field(int32)
    results: Sequence[DescribeConfigsResult] = field(Array(DescribeConfigsResult))
