"""JoinGroup v0-v9. v4 member ids first (KIP-394); v5 static members; v6 flexible; v9 KIP-814."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.asking import ask
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse


def handle_join_group(
    broker: Broker, call: Call, request: JoinGroupRequest
) -> JoinGroupResponse | None:
    """Answer when the group's next generation begins; at once if there is nothing to wait for."""
    if not request.group_id:
        return _refused(request.member_id, ErrorCode.INVALID_GROUP_ID)
    settings = broker.settings
    shortest, longest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
    if not shortest <= request.session_timeout_ms <= longest:
        return _refused(request.member_id, ErrorCode.INVALID_SESSION_TIMEOUT)
    groups = broker.coordinators.groups
    ask(groups, request.group_id, call, request, lambda refusal: _refused("", refusal.code))
    return None


def _refused(member_id: str, code: ErrorCode) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id)
