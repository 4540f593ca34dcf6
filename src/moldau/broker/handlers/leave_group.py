"""LeaveGroup v0-v5. v3 several members at once (KIP-345); v4 flexible; v5 reasons."""

from typing import Final

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.requests import request_command, submit_for
from moldau.coordination.refusal import Refusal
from moldau.groups.commands import LeaveGroup
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)

FIRST_WITH_MANY: Final = 3


def handle_leave_group(
    broker: Broker, call: Call, request: LeaveGroupRequest
) -> LeaveGroupResponse | None:
    """Answer for each member, or before v3 for the only one, whether it was one."""
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    is_alone = call.version < FIRST_WITH_MANY
    members = [MemberIdentity(member_id=request.member_id)] if is_alone else request.members
    each = LeaveGroupRequest(group_id=request.group_id, members=members)

    def answer(outcome: LeaveGroupResponse | Refusal) -> None:
        if isinstance(outcome, Refusal):
            call.answer(LeaveGroupResponse(error_code=outcome.code))
            return
        if is_alone:
            call.answer(LeaveGroupResponse(error_code=outcome.members[0].error_code))
        else:
            call.answer(outcome)

    command = request_command(LeaveGroup, call, each)
    submit_for(call, broker.coordinators.groups, request.group_id, command, answer)
    return None
