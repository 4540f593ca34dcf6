"""ControllerRegistration, API key 70: v0, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    Uuid,
    boolean,
    field,
    int16,
    int32,
    string,
    uint16,
    uuid,
)


class Listener(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)
    security_protocol: int = field(int16)


class Feature(Struct):
    name: str = field(string)
    min_supported_version: int = field(int16)
    max_supported_version: int = field(int16)


class ControllerRegistrationRequest(Message, api_key=70, versions=(0, 0), flexible=0):
    controller_id: int = field(int32)
    incarnation_id: Uuid = field(uuid)
    zk_migration_ready: bool = field(boolean)
    listeners: Sequence[Listener] = field(Array(Listener))
    features: Sequence[Feature] = field(Array(Feature))


class ControllerRegistrationResponse(Message, api_key=70, versions=(0, 0), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)
