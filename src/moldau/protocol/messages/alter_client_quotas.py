"""AlterClientQuotas, API key 49: v0-v1, flexible from v1."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    boolean,
    field,
    float64,
    int16,
    int32,
    string,
)


class EntityData(Struct):
    entity_type: str = field(string)
    entity_name: str | None = field(string, nullable=0)


class OpData(Struct):
    key: str = field(string)
    value: float = field(float64)
    remove: bool = field(boolean)


class AlterClientQuotasRequestEntryData(Struct):
    entity: Sequence[EntityData] = field(Array(EntityData))
    ops: Sequence[OpData] = field(Array(OpData))


class AlterClientQuotasRequest(Message, api_key=49, versions=(0, 1), flexible=1):
    entries: Sequence[AlterClientQuotasRequestEntryData] = field(
        Array(AlterClientQuotasRequestEntryData)
    )
    validate_only: bool = field(boolean)


class AlterClientQuotasResponseEntryData(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)
    entity: Sequence[EntityData] = field(Array(EntityData))


class AlterClientQuotasResponse(Message, api_key=49, versions=(0, 1), flexible=1):
    throttle_time_ms: int = field(int32)
    entries: Sequence[AlterClientQuotasResponseEntryData] = field(
        Array(AlterClientQuotasResponseEntryData)
    )
