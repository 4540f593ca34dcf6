"""JoinGroup v0-v9. v4 member ids first (KIP-394); v5 static members; v6 flexible; v9 KIP-814."""

from typing import Final

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.requests import request_command, submit_for
from moldau.coordination.refusal import Refusal
from moldau.groups.commands import JoinGroup
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

FIRST_WITHOUT_NAME: Final = 7
"""From this version on, an answer need not name a protocol."""


def handle_join_group(
    broker: Broker, call: Call, request: JoinGroupRequest
) -> JoinGroupResponse | None:
    """Answer when the group's next generation begins; at once if there is nothing to wait for."""
    if not request.group_id:
        return _refused(call, request.member_id, ErrorCode.INVALID_GROUP_ID)
    settings = broker.settings
    shortest, longest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
    if not shortest <= request.session_timeout_ms <= longest:
        return _refused(call, request.member_id, ErrorCode.INVALID_SESSION_TIMEOUT)

    def answer(outcome: JoinGroupResponse | Refusal) -> None:
        if isinstance(outcome, Refusal):
            call.answer(_refused(call, "", outcome.code))
            return
        if outcome.error_code:
            outcome = _refused(call, outcome.member_id, ErrorCode(outcome.error_code))
        call.answer(outcome)

    command = request_command(JoinGroup, call, request)
    submit_for(call, broker.coordinators.groups, request.group_id, command, answer)
    return None


def _refused(call: Call, member_id: str, code: ErrorCode) -> JoinGroupResponse:
    name = None if call.version >= FIRST_WITHOUT_NAME else ""
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=name)
