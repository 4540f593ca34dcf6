"""A classic group's way from one generation to the next."""

from moldau.coordination.decision import Decision, UnaskedDecision
from moldau.groups.classic.decision_builder import (
    ClassicJoinTimer,
    ClassicSyncTimer,
    DecisionBuilder,
    refused_sync,
)
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.member import ClassicMember
from moldau.groups.classic.membership import ClassicGroupState, ClassicMembers
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.join_group import JoinGroupResponse


def go_on(draft: DecisionBuilder) -> None:
    """Begin a rebalance, or end the joining if no member is missing any more."""
    if draft.membership.state is ClassicGroupState.PREPARING:
        complete_if_joined(draft)
    else:
        prepare(draft)


def prepare(draft: DecisionBuilder) -> None:
    """Have all members join again."""
    membership = draft.membership
    if membership.state is ClassicGroupState.COMPLETING:
        give_up(draft, ErrorCode.REBALANCE_IN_PROGRESS)
    membership.unsynced.clear()
    draft.cancel(ClassicSyncTimer(draft.group_id))
    membership.move(ClassicGroupState.PREPARING, draft.now)
    if membership.is_initial:
        # The first members of many come: wait for others, or each would begin a rebalance.
        delay_ms = draft.settings.group_initial_rebalance_delay_ms
        membership.delay_ms = delay_ms
        membership.delay_left_ms = max(membership.rebalance_timeout_ms - delay_ms, 0)
        membership.has_grown = False
        draft.ring(ClassicJoinTimer(draft.group_id), delay_ms)
    elif membership.has_all_joined:
        complete(draft)
    else:
        draft.ring(ClassicJoinTimer(draft.group_id), membership.rebalance_timeout_ms)


def give_up(draft: DecisionBuilder, code: ErrorCode) -> None:
    """Assign nothing, and tell the members that wait for their part why."""
    for member in draft.membership.members.values():
        member.assignment = b""
        if member.sync is not None:
            draft.answer_sync(member, refused_sync(code))
            draft.renew(member)


def complete_if_joined(draft: DecisionBuilder) -> None:
    """End the joining if all members are there; the first rebalance still waits for its time.

    Nothing follows in other states.
    """
    membership = draft.membership
    if (
        membership.state is ClassicGroupState.PREPARING
        and not membership.is_initial
        and membership.has_all_joined
    ):
        complete(draft)


def complete(draft: DecisionBuilder) -> None:
    """Make the next generation of members that joined, and of static members, which may be away."""
    membership = draft.membership
    draft.cancel(ClassicJoinTimer(draft.group_id))
    for member in [*membership.members.values()]:
        if member.join is None and member.instance_id is None:
            draft.drop(member)
    if membership.members and not membership.elect_joined():
        # Only static members are left, and none is here: their sessions end, or one comes.
        draft.ring(ClassicJoinTimer(draft.group_id), membership.rebalance_timeout_ms)
        return
    membership.generation += 1
    if not membership.members:
        membership.protocol = None
        membership.move(ClassicGroupState.EMPTY, draft.now)
        draft.try_record()
        return
    membership.protocol = membership.choose_protocol()
    membership.move(ClassicGroupState.COMPLETING, draft.now)
    for member in membership.members.values():
        draft.answer_join(member, joined(membership, member))
        draft.renew(member)
        member.is_new = False
    membership.unsynced = {*membership.members}
    draft.ring(ClassicSyncTimer(draft.group_id), membership.rebalance_timeout_ms)


def joined(membership: ClassicMembers, member: ClassicMember) -> JoinGroupResponse:
    """Return what a member hears of its generation; the leader hears of all members."""
    is_leader = membership.leader == member.member_id
    members = membership.members.values() if is_leader else ()
    return JoinGroupResponse(
        generation_id=membership.generation,
        protocol_type=membership.protocol_type,
        protocol_name=membership.protocol,
        leader=membership.leader or "",
        member_id=member.member_id,
        members=[each.for_leader(membership.protocol) for each in members],
    )


def expire_join(shelf: GroupShelf, timer: ClassicJoinTimer, now: Instant) -> UnaskedDecision:
    """End the joining; the first rebalance waits on while members come, within their timeout."""
    group = shelf.groups.get(timer.group_id)
    if (
        not isinstance(group, ClassicGroup)
        or group.membership.state is not ClassicGroupState.PREPARING
    ):
        return Decision()
    membership = group.membership
    draft = DecisionBuilder(shelf, timer.group_id, membership, now)
    if membership.is_initial and membership.has_grown and membership.delay_left_ms > 0:
        membership.has_grown = False
        delay_ms = min(draft.settings.group_initial_rebalance_delay_ms, membership.delay_left_ms)
        membership.delay_left_ms = max(membership.delay_left_ms - membership.delay_ms, 0)
        membership.delay_ms = delay_ms
        draft.ring(timer, delay_ms)
    else:
        complete(draft)
    return draft.decision()


def expire_sync(shelf: GroupShelf, timer: ClassicSyncTimer, now: Instant) -> UnaskedDecision:
    """Do without members that never asked for their part."""
    group = shelf.groups.get(timer.group_id)
    if not isinstance(group, ClassicGroup) or not group.membership.unsynced:
        return Decision()
    membership = group.membership
    draft = DecisionBuilder(shelf, timer.group_id, membership, now)
    for member_id in sorted(membership.unsynced):
        draft.drop(membership.members[member_id])
    prepare(draft)
    return draft.decision()
