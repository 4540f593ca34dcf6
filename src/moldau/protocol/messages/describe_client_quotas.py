"""DescribeClientQuotas, API key 48: v0-v1, flexible from v1."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    boolean,
    field,
    float64,
    int8,
    int16,
    int32,
    string,
)


class ComponentData(Struct):
    entity_type: str = field(string)
    match_type: int = field(int8)
    match: str | None = field(string, nullable=0)


class DescribeClientQuotasRequest(Message, api_key=48, versions=(0, 1), flexible=1):
    components: Sequence[ComponentData] = field(Array(ComponentData))
    strict: bool = field(boolean)


class EntityData(Struct):
    entity_type: str = field(string)
    entity_name: str | None = field(string, nullable=0)


class ValueData(Struct):
    key: str = field(string)
    value: float = field(float64)


class EntryData(Struct):
    entity: Sequence[EntityData] = field(Array(EntityData))
    values: Sequence[ValueData] = field(Array(ValueData))


class DescribeClientQuotasResponse(Message, api_key=48, versions=(0, 1), flexible=1):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)
    entries: Sequence[EntryData] | None = field(Array(EntryData), nullable=0)
