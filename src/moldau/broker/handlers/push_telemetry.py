"""PushTelemetry v0 (KIP-714): a client's metrics, kept for our own metrics endpoint."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.client_telemetry import Instance
from moldau.broker.otlp import read_points
from moldau.kernel.errors import ProtocolError
from moldau.metadata.topics import RESERVED_MAX
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from moldau.records.compression import Codec, decompress


def handle_push_telemetry(
    broker: Broker, call: Call, request: PushTelemetryRequest
) -> PushTelemetryResponse:
    """Keep the metrics, or say why not."""
    if int.from_bytes(request.client_instance_id) < RESERVED_MAX:
        return PushTelemetryResponse(error_code=ErrorCode.INVALID_REQUEST)
    configs = broker.image.configs
    instance = broker.telemetry.instance(request.client_instance_id, call, configs)
    code = _refuse(broker, call, request, instance)
    instance.is_terminating = request.terminating
    if code is ErrorCode.NONE and request.metrics:
        # What is unpacked has the same bound: it is read on the loop, and metrics are small.
        bytes_max = broker.settings.telemetry_max_bytes
        try:
            data = decompress(request.compression_type, request.metrics, bytes_max=bytes_max)
            broker.telemetry.record(instance, read_points(data))
        except ProtocolError:
            code = ErrorCode.INVALID_RECORD
    return PushTelemetryResponse(error_code=code)


def _refuse(
    broker: Broker, call: Call, request: PushTelemetryRequest, instance: Instance
) -> ErrorCode:
    now = call.received.monotonic
    assert instance.subscription is not None
    if instance.is_terminating:
        return ErrorCode.INVALID_REQUEST
    if not instance.may_push(now) and not request.terminating:
        return ErrorCode.THROTTLING_QUOTA_EXCEEDED
    if request.subscription_id != instance.subscription.id:
        return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    instance.pushed(now)
    if request.compression_type not in {*Codec}:
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    if len(request.metrics) > broker.settings.telemetry_max_bytes:
        return ErrorCode.TELEMETRY_TOO_LARGE
    return ErrorCode.NONE
