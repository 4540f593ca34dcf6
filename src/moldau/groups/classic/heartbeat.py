"""Heartbeat: a member is still there, and hears whether it has to join again."""

from typing import TYPE_CHECKING

from moldau.coordination.machine import Asked, Decision, Ticket
from moldau.coordination.refusal import Refusal
from moldau.groups.classic.draft import Draft
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.membership import State
from moldau.kernel.clock import Instant
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from moldau.groups.machine import GroupMachine


def decide_heartbeat(
    machine: "GroupMachine",
    asked: Asked[HeartbeatRequest],
    _ticket: Ticket,
    now: Instant,
) -> Decision:
    """Decide a Heartbeat; `Refusal` for who is not of this generation."""
    request = asked.request
    group = machine.groups.get(request.group_id)
    if not isinstance(group, ClassicGroup):
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, "There is no such group.")
    membership = group.membership
    membership.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != membership.generation:
        raise Refusal(
            ErrorCode.ILLEGAL_GENERATION, f"The group is in generation {membership.generation}."
        )
    draft = Draft(machine, request.group_id, membership, now)
    draft.renew(membership.members[request.member_id])
    is_preparing = membership.state is State.PREPARING
    code = ErrorCode.REBALANCE_IN_PROGRESS if is_preparing else ErrorCode.NONE
    return draft.decision(HeartbeatResponse(error_code=code))
