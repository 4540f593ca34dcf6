"""Heartbeat v0-v4. v3 static members; v4 flexible."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.requests import ask, request_command
from moldau.coordination.refusal import Refusal
from moldau.coordination.refusal_codes import ErrorReader, told_code
from moldau.groups.commands import ClassicHeartbeat
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle_heartbeat(
    broker: Broker, call: Call, request: HeartbeatRequest
) -> HeartbeatResponse | None:
    """Answer whether the member is one, and whether it has to join again."""
    if not request.group_id:
        return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    command = request_command(ClassicHeartbeat, call, request)
    ask(call, broker.coordinators.groups, request.group_id, command, _refused)
    return None


def _refused(refusal: Refusal) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=told_code(ErrorReader.HEARTBEAT, refusal.code))
