"""Share groups, told to who asks."""

from typing import TYPE_CHECKING

from moldau.coordination.machine import Asked, Decision, Ticket
from moldau.coordination.refusal import Refusal
from moldau.groups.share.assignor import NAME
from moldau.groups.share.commands import ListShared
from moldau.groups.share.finding import find_share_group
from moldau.groups.share.group import ShareGroup, ShareMember
from moldau.kernel.clock import Instant
from moldau.metadata.topics import Topics
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from moldau.groups.machine import GroupMachine


def decide_describe(
    machine: "GroupMachine",
    asked: Asked[ShareGroupDescribeRequest],
    ticket: Ticket,  # noqa: ARG001
    now: Instant,  # noqa: ARG001
) -> Decision:
    """Tell all that is known of groups."""
    return Decision(
        response=ShareGroupDescribeResponse(
            groups=[_described(machine, group_id) for group_id in asked.request.group_ids]
        )
    )


def decide_list_shared(
    machine: "GroupMachine",
    command: ListShared,
    ticket: Ticket,  # noqa: ARG001
    now: Instant,  # noqa: ARG001
) -> Decision:
    """Tell which partitions have a share state: none, if there is no such share group."""
    group = machine.groups.get(command.group_id)
    topics = group.topics.initialized if isinstance(group, ShareGroup) else {}
    return Decision(response={each: topic.partitions for each, topic in topics.items()})


def _described(machine: "GroupMachine", group_id: str) -> DescribedGroup:
    try:
        if not group_id:
            raise Refusal(ErrorCode.INVALID_GROUP_ID, "A group has a name.")
        group = find_share_group(machine, group_id)
    except Refusal as refusal:
        return DescribedGroup(
            error_code=refusal.code,
            error_message=refusal.message,
            group_id=group_id,
        )
    topics = machine.context.image.topics
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=NAME,
        members=[_member(member, topics) for member in _in_order(group)],
    )


def _in_order(group: ShareGroup) -> list[ShareMember]:
    return [group.members[member_id] for member_id in sorted(group.members)]


def _member(member: ShareMember, topics: Topics) -> Member:
    assigned = [
        TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=sorted(partitions))
        for topic_id, partitions in member.assigned.items()
        if (topic := topics.find_by_id(topic_id)) is not None
    ]
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.subscribed,
        assignment=Assignment(topic_partitions=assigned),
    )
