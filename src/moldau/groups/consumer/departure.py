"""Members that leave, for good or for a while, and members that are fenced."""

from dataclasses import replace

from moldau.coordination.decision import Decision, UnaskedDecision
from moldau.groups.consumer.draft import ConsumerGroupDraft
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import LEAVING_FOR_A_WHILE, ConsumerMember
from moldau.groups.consumer.records import (
    current_record,
    epoch_record,
    no_member_records,
    no_regex_record,
)
from moldau.groups.consumer.timers import MemberRebalanceTimer, MemberTimer
from moldau.groups.migration.downgrade import try_downgrade
from moldau.groups.modern.topic_hash import metadata_hash
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def decide_leave(
    shelf: GroupShelf, request: ConsumerGroupHeartbeatRequest, now: Instant
) -> Decision[ConsumerGroupHeartbeatResponse]:
    """Let a member go; a static one that comes back soon keeps its place."""
    group = shelf.get_consumer_group(request.group_id)
    if request.instance_id is None:
        member = group.get_member(request.member_id)
    else:
        member = group.get_static(request.instance_id, request.member_id)
    response = ConsumerGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )
    if request.instance_id is not None and request.member_epoch == LEAVING_FOR_A_WHILE:
        shelf.consumers.deadlines.clear(MemberRebalanceTimer(group.group_id, member.member_id))
        return Decision([current_record(group.group_id, _gone_for_a_while(member))], response)
    return fence(shelf, group, now, member).answered(response)


def expire_member(shelf: GroupShelf, timer: MemberTimer, now: Instant) -> UnaskedDecision:
    """Fence a member that was silent, or has not done what it should, for too long."""
    effects = shelf.consumers.deadlines.fired(timer, now)
    if effects is not None:
        return Decision(effects=effects)
    group = shelf.groups.get(timer.group_id)
    if not isinstance(group, ConsumerGroup) or timer.member_id not in group.members:
        return Decision()
    return fence(shelf, group, now, group.members[timer.member_id])


def fence(
    shelf: GroupShelf, group: ConsumerGroup, now: Instant, *members: ConsumerMember
) -> UnaskedDecision:
    """Have the group go on without some of its members, as a classic one if it is that now."""
    draft, group_id = ConsumerGroupDraft(group), group.group_id
    for member in members:
        draft.write(*no_member_records(group_id, member.member_id))
        shelf.consumers.forget(group_id, member.member_id)
    downgraded = try_downgrade(shelf, group, draft.group, now)
    if downgraded is not None:
        return downgraded
    group = draft.group
    for regex in sorted(group.unused_regexes()):
        draft.write(no_regex_record(group_id, regex))
    if not group.members:
        shelf.consumers.forget_group(group_id)
    topics = metadata_hash(group.topic_names(), shelf.context.image)
    draft.write(epoch_record(group_id, group.epoch + 1, topics))
    return Decision(draft.records)


def _gone_for_a_while(member: ConsumerMember) -> ConsumerMember:
    return replace(
        member,
        epoch=LEAVING_FOR_A_WHILE,
        # The member that takes its place begins again at 0.
        assigned={
            topic_id: dict.fromkeys(partitions, 0)
            for topic_id, partitions in member.assigned.items()
        },
        revoking={},
    )
