"""The target of a group's epoch: what each member is to get."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from moldau.groups.consumer.draft import ConsumerGroupDraft
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import ConsumerMember
from moldau.groups.consumer.records import target_epoch_record, target_record
from moldau.groups.consumer.timers import assignment_interval_ms
from moldau.groups.context import GroupContext
from moldau.groups.modern.assignors.ranges import assign_ranges
from moldau.groups.modern.assignors.spec import Assignor, MemberSpec
from moldau.groups.modern.assignors.uniform import assign_uniformly
from moldau.kernel.clock import Instant
from moldau.kernel.ids import TopicId
from moldau.metadata.image import ClusterImage
from moldau.metadata.settings.broker import BrokerSettings

ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniformly, "range": assign_ranges}


def assignor_names(settings: BrokerSettings) -> list[str]:
    """Return the assignors that members may choose; the first is for members that choose none.

    Others than these would be Java classes, which cannot be loaded here.
    """
    named = [name for name in settings.group_consumer_assignors if name in ASSIGNORS]
    return named or list(ASSIGNORS)


def preferred_assignor(group: ConsumerGroup, context: GroupContext) -> str:
    """Return the assignor that most members want, of those that want one."""
    names = assignor_names(context.settings)
    wishes = Counter(member.server_assignor for member in group.members.values())
    return max(names, key=lambda name: wishes[name])


def topic_ids_of(
    group: ConsumerGroup, member: ConsumerMember, image: ClusterImage
) -> frozenset[TopicId]:
    """Return what a member reads of the topics that there are."""
    topics = map(image.topics.find, group.topic_names_of(member))
    return frozenset(topic.topic_id for topic in topics if topic is not None)


def renew_target(context: GroupContext, draft: ConsumerGroupDraft, now: Instant) -> None:
    """Make a target for the group's epoch, unless the last one is too young."""
    group, group_id = draft.group, draft.group.group_id
    if group.epoch <= group.target_epoch:
        return
    age_ms = now.wall_ms - group.target_ms
    # A wall clock that was set back does not hold up the members.
    if 0 <= age_ms < assignment_interval_ms(context, group_id):
        return
    image = context.image
    specs = {
        member_id: MemberSpec(
            topic_ids_of(group, member, image), group.target_of(member_id), member.instance_id
        )
        for member_id, member in group.members.items()
    }
    partition_counts = {}
    for topic_id in frozenset().union(*(spec.topic_ids for spec in specs.values())):
        topic = image.topics.find_by_id(topic_id)
        assert topic is not None, "it was found by its name"
        partition_counts[topic_id] = len(topic.partitions)
    assign = ASSIGNORS[preferred_assignor(group, context)]
    for member_id, target in sorted(assign(specs, partition_counts).items()):
        if group.targets.get(member_id) != target:
            draft.write(target_record(group_id, member_id, target))
    draft.write(target_epoch_record(group_id, group.epoch, now.wall_ms))
