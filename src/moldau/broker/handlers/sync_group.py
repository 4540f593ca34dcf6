"""SyncGroup v0-v5. v3 static members; v4 flexible; v5 protocol type and name (KIP-559)."""

from typing import Final

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.requests import ask, request_command
from moldau.groups.commands import SyncGroup
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

FIRST_WITH_PROTOCOL: Final = 5


def handle_sync_group(
    broker: Broker, call: Call, request: SyncGroupRequest
) -> SyncGroupResponse | None:
    """Answer with the member's part, when the leader has said who gets which."""
    if call.version >= FIRST_WITH_PROTOCOL and (
        request.protocol_type is None or request.protocol_name is None
    ):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not request.group_id:
        return SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    ask(
        call,
        broker.coordinators.groups,
        request.group_id,
        request_command(SyncGroup, call, request),
        lambda refusal: SyncGroupResponse(error_code=refusal.code),
    )
    return None
