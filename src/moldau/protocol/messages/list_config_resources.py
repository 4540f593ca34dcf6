"""ListConfigResources, API key 74: v0-v1, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, field, int8, int16, int32, string


class ListConfigResourcesRequest(Message, api_key=74, versions=(0, 1), flexible=0):
    resource_types: Sequence[int] = field(Array(int8), since=1)


class ConfigResource(Struct):
    resource_name: str = field(string)
    resource_type: int = field(int8, since=1, default=16, ignorable=True)


class ListConfigResourcesResponse(Message, api_key=74, versions=(0, 1), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    config_resources: Sequence[ConfigResource] = field(Array(ConfigResource))
