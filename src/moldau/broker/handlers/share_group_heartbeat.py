"""ShareGroupHeartbeat v1."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.requests import ask, request_command
from moldau.broker.shares.requests import check_enabled, is_member_id
from moldau.coordination.refusal import Refusal
from moldau.groups.commands import ShareHeartbeat
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)


def handle_share_group_heartbeat(
    broker: Broker, call: Call, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse | None:
    """Let a member of a share group join, stay or leave."""
    try:
        check_enabled(broker)
        if not is_member_id(request.member_id):
            raise Refusal(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    except Refusal as refusal:
        return _refused(refusal)
    command = request_command(ShareHeartbeat, call, request)
    ask(call, broker.coordinators.groups, request.group_id, command, _refused)
    return None


def _refused(refusal: Refusal) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=refusal.code, error_message=refusal.message)
