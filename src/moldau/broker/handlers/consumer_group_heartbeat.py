"""ConsumerGroupHeartbeat v0-v1. v1 regular expressions, and ids that members choose themselves."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.requests import ask, request_command
from moldau.broker.protocols import check_consumer_protocol
from moldau.coordination.refusal import Refusal
from moldau.groups.commands import ConsumerHeartbeat
from moldau.groups.consumer.heartbeat import check_heartbeat
from moldau.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def handle_consumer_group_heartbeat(
    broker: Broker, call: Call, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | None:
    """Have the group's coordinator hear of a member, or of a client that joins."""
    try:
        check_consumer_protocol(broker)
        check_heartbeat(request, call.version, broker.settings)
    except Refusal as refusal:
        return _refused(refusal)
    command = request_command(ConsumerHeartbeat, call, request)
    ask(call, broker.coordinators.groups, request.group_id, command, _refused)
    return None


def _refused(refusal: Refusal) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=refusal.code, error_message=refusal.message)
