"""LeaveGroup: members go, or are sent away by an administrator."""

from moldau.coordination.command import Ticket
from moldau.coordination.decision import Decision
from moldau.coordination.refusal import Refusal
from moldau.groups.classic.decision_builder import ClassicSessionTimer, DecisionBuilder
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.membership import ClassicGroupState
from moldau.groups.classic.rebalance import complete_if_joined, prepare
from moldau.groups.commands import LeaveGroup
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.leave_group import (
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)


def decide_leave(
    shelf: GroupShelf,
    asked: LeaveGroup,
    _ticket: Ticket[LeaveGroupResponse],
    now: Instant,
) -> Decision[LeaveGroupResponse]:
    """Decide a LeaveGroup, as versions from 3 on have it: each member is answered for itself."""
    request = asked.request
    group = shelf.groups.get(request.group_id)
    if not isinstance(group, ClassicGroup):
        unknown = [_answer(each, ErrorCode.UNKNOWN_MEMBER_ID) for each in request.members]
        return Decision(response=LeaveGroupResponse(members=unknown))
    draft = DecisionBuilder(shelf, request.group_id, group.membership, now)
    answers = []
    for identity in request.members:
        try:
            _leave(draft, identity)
        except Refusal as refusal:
            answers.append(_answer(identity, refusal.code))
        else:
            answers.append(_answer(identity, ErrorCode.NONE))
    if any(each.error_code == ErrorCode.NONE for each in answers):
        if group.membership.state in {ClassicGroupState.STABLE, ClassicGroupState.COMPLETING}:
            prepare(draft)
        else:
            complete_if_joined(draft)
    return draft.decision(LeaveGroupResponse(members=answers))


def _leave(draft: DecisionBuilder, identity: MemberIdentity) -> None:
    membership = draft.membership
    member_id = identity.member_id
    if member_id in membership.pending:
        membership.pending.discard(member_id)
        draft.cancel(ClassicSessionTimer(draft.group_id, member_id))
        return
    if not member_id and identity.group_instance_id is not None:
        # KIP-345: administrators know static members by the names of their instances.
        member_id = membership.static.get(identity.group_instance_id, "")
    membership.check_member(member_id, identity.group_instance_id)
    draft.drop(membership.members[member_id])


def _answer(identity: MemberIdentity, code: ErrorCode) -> MemberResponse:
    return MemberResponse(
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        error_code=code,
    )
