"""SyncGroup: the leader brings the assignment, and each member gets its own part."""

from moldau.coordination.command import Ticket
from moldau.coordination.decision import Decision
from moldau.coordination.refusal import Refusal
from moldau.groups.classic.decision_builder import ClassicSyncTimer, DecisionBuilder
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.member import ClassicMember
from moldau.groups.classic.membership import ClassicGroupState, ClassicMembers
from moldau.groups.classic.rebalance import give_up, prepare
from moldau.groups.commands import SyncGroup
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def decide_sync(
    shelf: GroupShelf, asked: SyncGroup, ticket: Ticket[SyncGroupResponse], now: Instant
) -> Decision[SyncGroupResponse]:
    """Decide a SyncGroup; `Refusal` if the member is not of this generation."""
    request = asked.request
    group = shelf.groups.get(request.group_id)
    if not isinstance(group, ClassicGroup):
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, "There is no such group.")
    membership = group.membership
    _check(membership, request)
    member = membership.members[request.member_id]
    draft = DecisionBuilder(shelf, request.group_id, membership, now)
    membership.unsynced.discard(request.member_id)
    if not membership.unsynced:
        draft.cancel(ClassicSyncTimer(request.group_id))
    if membership.state is ClassicGroupState.STABLE:
        return draft.decision(_assigned(membership, member))
    draft.wait_synced(member, ticket)
    if membership.leader == request.member_id:
        _assign(draft, request)
    return draft.decision()


def _check(membership: ClassicMembers, request: SyncGroupRequest) -> None:
    membership.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != membership.generation:
        raise Refusal(
            ErrorCode.ILLEGAL_GENERATION, f"The group is in generation {membership.generation}."
        )
    if request.protocol_type not in {None, membership.protocol_type} or (
        request.protocol_name not in {None, membership.protocol}
    ):
        raise Refusal(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"The group speaks {membership.protocol} of {membership.protocol_type}.",
        )
    if membership.state is ClassicGroupState.PREPARING:
        raise Refusal(ErrorCode.REBALANCE_IN_PROGRESS, "The group rebalances.")


def _assign(draft: DecisionBuilder, request: SyncGroupRequest) -> None:
    """Record all members' parts; the answers wait until the record is committed."""
    membership = draft.membership
    parts = {each.member_id: bytes(each.assignment) for each in request.assignments}
    for member in membership.members.values():
        member.assignment = parts.get(member.member_id, b"")
    if not draft.try_record():
        give_up(draft, ErrorCode.UNKNOWN_SERVER_ERROR)
        prepare(draft)
        return
    membership.move(ClassicGroupState.STABLE, draft.now)
    for member in membership.members.values():
        if member.sync is not None:
            draft.answer_sync(member, _assigned(membership, member))
            draft.renew(member)


def _assigned(membership: ClassicMembers, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=membership.protocol_type,
        protocol_name=membership.protocol,
        assignment=member.assignment,
    )
