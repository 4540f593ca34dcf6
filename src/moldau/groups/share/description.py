"""Share groups, as ShareGroupDescribe tells of them."""

from moldau.coordination.command import Ticket
from moldau.coordination.decision import Decision
from moldau.coordination.refusal import Refusal
from moldau.groups.commands import DescribeShareGroup, ListShared
from moldau.groups.modern.partitions import Partitions
from moldau.groups.share.assignor import NAME
from moldau.groups.share.group import ShareGroup
from moldau.groups.share.member import ShareGroupMember
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.metadata.topics import Topics
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)


def decide_describe(
    shelf: GroupShelf, command: DescribeShareGroup, _ticket: Ticket[DescribedGroup], _now: Instant
) -> Decision[DescribedGroup]:
    """Describe a group as it is; `Refusal` if there is none."""
    if not command.group_id:
        raise Refusal(ErrorCode.INVALID_GROUP_ID, "A group has a name.")
    group = shelf.get_share_group(command.group_id)
    topics = shelf.context.image.topics
    described = DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=NAME,
        members=[_member(member, topics) for member in _in_order(group)],
    )
    return Decision(response=described)


def decide_list_shared(
    shelf: GroupShelf, command: ListShared, _ticket: Ticket[Partitions], _now: Instant
) -> Decision[Partitions]:
    """Tell which partitions have a share state: none, if there is no such share group."""
    group = shelf.groups.get(command.group_id)
    topics = group.topics.initialized if isinstance(group, ShareGroup) else {}
    return Decision(response={each: topic.partitions for each, topic in topics.items()})


def _in_order(group: ShareGroup) -> list[ShareGroupMember]:
    return [group.members[member_id] for member_id in sorted(group.members)]


def _member(member: ShareGroupMember, topics: Topics) -> Member:
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
