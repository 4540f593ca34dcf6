"""GetTelemetrySubscriptions v0 (KIP-714): which metrics a client is asked to push."""

from typing import Final

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.controller.create_topics import topic_id_of
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from moldau.protocol.schema import ZERO_UUID
from moldau.records.compression import Codec

# In the order in which clients should prefer them.
ACCEPTED: Final = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)


def handle_get_telemetry_subscriptions(
    broker: Broker, call: Call, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    """Answer with what matches the client; a client that has no id yet gets one."""
    instance_id = request.client_instance_id
    if instance_id == ZERO_UUID:
        instance_id = topic_id_of(broker.environment.entropy(16))
    instance = broker.telemetry.instance(instance_id, call, broker.image.configs)
    if not instance.try_get(call.received.monotonic):
        return GetTelemetrySubscriptionsResponse(error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    subscription = instance.subscription
    assert subscription is not None
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=subscription.id,
        accepted_compression_types=ACCEPTED,
        push_interval_ms=subscription.interval_ms,
        telemetry_max_bytes=broker.settings.telemetry_max_bytes,
        delta_temporality=True,
        requested_metrics=subscription.metrics,
    )
