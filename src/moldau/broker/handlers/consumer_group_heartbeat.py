"""ConsumerGroupHeartbeat v0-v1. v1 regular expressions, and ids that members choose themselves."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.asking import ask
from moldau.broker.protocols import check_consumer_protocol
from moldau.coordination.refusal import Refusal
from moldau.groups.consumer.checking import check_heartbeat
from moldau.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def handle_consumer_group_heartbeat(
    broker: Broker, call: Call, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | None:
    """Have the group's coordinator hear of a member, or of somebody who wants to be one."""
    try:
        check_consumer_protocol(broker)
        check_heartbeat(request, call.version, broker.settings)
    except Refusal as refusal:
        return _refused(refusal)
    ask(broker.coordinators.groups, request.group_id, call, request, _refused)
    return None


def _refused(refusal: Refusal) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=refusal.code, error_message=refusal.message)
