"""PushTelemetry, API key 72: v0, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from moldau.protocol.schema import Message, Uuid, blob, boolean, field, int8, int16, int32, uuid


class PushTelemetryRequest(Message, api_key=72, versions=(0, 0), flexible=0):
    client_instance_id: Uuid = field(uuid)
    subscription_id: int = field(int32)
    terminating: bool = field(boolean)
    compression_type: int = field(int8)
    metrics: bytes = field(blob)


class PushTelemetryResponse(Message, api_key=72, versions=(0, 0), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
