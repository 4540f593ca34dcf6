"""What is told of a consumer group."""

from typing import Final

from moldau.coordination.command import Ticket
from moldau.coordination.decision import Decision
from moldau.groups.commands import DescribeConsumerGroup
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import ConsumerMember, without_epochs
from moldau.groups.consumer.targets import preferred_assignor
from moldau.groups.modern.partitions import Partitions
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.metadata.image import ClusterImage
from moldau.protocol.messages.consumer_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)

CLASSIC_MEMBER: Final = 0
CONSUMER_MEMBER: Final = 1


def decide_describe(
    shelf: GroupShelf,
    command: DescribeConsumerGroup,
    _ticket: Ticket[DescribedGroup],
    _now: Instant,
) -> Decision[DescribedGroup]:
    """Tell of a group as it is; `Refusal` if there is none."""
    group = shelf.get_consumer_group(command.group_id)
    image = shelf.context.image
    described = DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=preferred_assignor(group, shelf.context),
        members=[_member(group, member, image) for _, member in sorted(group.members.items())],
    )
    return Decision(response=described)


def _member(group: ConsumerGroup, member: ConsumerMember, image: ClusterImage) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment(_in_use(member), image),
        target_assignment=_assignment(group.target_of(member.member_id), image),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _in_use(member: ConsumerMember) -> Partitions:
    """Return what a member has, with what it has not given up yet."""
    used = dict(without_epochs(member.assigned))
    for topic_id, indexes in without_epochs(member.revoking).items():
        used[topic_id] = used.get(topic_id, frozenset()) | indexes
    return used


def _assignment(partitions: Partitions, image: ClusterImage) -> Assignment:
    """Tell partitions with the names of their topics; of topics that are gone nothing is told."""
    listed = []
    for topic_id, indexes in sorted(partitions.items()):
        topic = image.topics.find_by_id(topic_id)
        if topic is not None:
            listed.append(
                TopicPartitions(
                    topic_id=topic_id, topic_name=topic.name, partitions=sorted(indexes)
                )
            )
    return Assignment(topic_partitions=listed)
