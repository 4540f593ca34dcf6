"""Heartbeat: a member is still there, and hears whether it has to join again."""

from moldau.coordination.command import Ticket
from moldau.coordination.decision import Decision
from moldau.coordination.refusal import Refusal
from moldau.groups.classic.decision_builder import DecisionBuilder
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.membership import ClassicGroupState
from moldau.groups.commands import ClassicHeartbeat
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.heartbeat import HeartbeatResponse


def decide_heartbeat(
    shelf: GroupShelf,
    asked: ClassicHeartbeat,
    _ticket: Ticket[HeartbeatResponse],
    now: Instant,
) -> Decision[HeartbeatResponse]:
    """Decide a Heartbeat; `Refusal` if the member is not of this generation."""
    request = asked.request
    group = shelf.groups.get(request.group_id)
    if not isinstance(group, ClassicGroup):
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, "There is no such group.")
    membership = group.membership
    membership.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != membership.generation:
        raise Refusal(
            ErrorCode.ILLEGAL_GENERATION, f"The group is in generation {membership.generation}."
        )
    draft = DecisionBuilder(shelf, request.group_id, membership, now)
    draft.renew(membership.members[request.member_id])
    is_preparing = membership.state is ClassicGroupState.PREPARING
    code = ErrorCode.REBALANCE_IN_PROGRESS if is_preparing else ErrorCode.NONE
    return draft.decision(HeartbeatResponse(error_code=code))
