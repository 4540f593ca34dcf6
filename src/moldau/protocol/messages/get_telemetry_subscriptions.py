"""GetTelemetrySubscriptions, API key 71: v0, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Uuid,
    boolean,
    field,
    int8,
    int16,
    int32,
    string,
    uuid,
)


class GetTelemetrySubscriptionsRequest(Message, api_key=71, versions=(0, 0), flexible=0):
    client_instance_id: Uuid = field(uuid)


class GetTelemetrySubscriptionsResponse(Message, api_key=71, versions=(0, 0), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    client_instance_id: Uuid = field(uuid)
    subscription_id: int = field(int32)
    accepted_compression_types: Sequence[int] = field(Array(int8))
    push_interval_ms: int = field(int32)
    telemetry_max_bytes: int = field(int32)
    delta_temporality: bool = field(boolean)
    requested_metrics: Sequence[str] = field(Array(string))
