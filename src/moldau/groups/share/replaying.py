"""Share groups, made from their records."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from moldau.groups.share.group import (
    FIRST_EPOCH,
    NamedPartitions,
    SharedTopics,
    ShareGroup,
    ShareMember,
)
from moldau.kernel.ids import Offset, ProducerId, TopicId
from moldau.protocol.stored import share_groups as stored

if TYPE_CHECKING:
    from moldau.groups.machine import GroupMachine


def _group(machine: "GroupMachine", group_id: str, value: object) -> ShareGroup | None:
    """Return the group that a record is of; one that takes something back makes none."""
    group = machine.groups.get(group_id)
    if isinstance(group, ShareGroup):
        return group
    if value is None:
        return None
    group = machine.forming_shares.pop(group_id, None) or ShareGroup(group_id)
    machine.groups[group_id] = group
    return group


def replay_epoch(
    machine: "GroupMachine",
    _offset: Offset,
    _producer_id: ProducerId,
    key: stored.ShareGroupMetadataKey,
    value: stored.ShareGroupMetadataValue | None,
) -> None:
    """Take over a group's epoch; the last record of a group that is deleted takes it back."""
    group = _group(machine, key.group_id, value)
    if group is None:
        return
    if value is None:
        del machine.groups[key.group_id]
    else:
        group.epoch = value.epoch
        group.metadata_hash = value.metadata_hash


def replay_member(
    machine: "GroupMachine",
    _offset: Offset,
    _producer_id: ProducerId,
    key: stored.ShareGroupMemberMetadataKey,
    value: stored.ShareGroupMemberMetadataValue | None,
) -> None:
    """Take over what a member says of itself."""
    group = _group(machine, key.group_id, value)
    if group is None:
        return
    if value is None:
        group.members.pop(key.member_id, None)
        group.deadlines.pop(key.member_id, None)
    else:
        group.members[key.member_id] = replace(
            group.members.get(key.member_id, ShareMember(key.member_id)),
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed=tuple(value.subscribed_topic_names),
        )


def replay_target_epoch(
    machine: "GroupMachine",
    _offset: Offset,
    _producer_id: ProducerId,
    key: stored.ShareGroupTargetAssignmentMetadataKey,
    value: stored.ShareGroupTargetAssignmentMetadataValue | None,
) -> None:
    """Take over for which epoch the targets are."""
    group = _group(machine, key.group_id, value)
    if group is not None:
        group.assignment_epoch = FIRST_EPOCH if value is None else value.assignment_epoch
        group.assignment_ms = 0 if value is None else value.assignment_timestamp


def replay_target(
    machine: "GroupMachine",
    _offset: Offset,
    _producer_id: ProducerId,
    key: stored.ShareGroupTargetAssignmentMemberKey,
    value: stored.ShareGroupTargetAssignmentMemberValue | None,
) -> None:
    """Take over what a member shall read."""
    group = _group(machine, key.group_id, value)
    if group is None:
        return
    if value is None:
        group.targets.pop(key.member_id, None)
    else:
        group.targets[key.member_id] = {
            TopicId(topic.topic_id): frozenset(topic.partitions) for topic in value.topic_partitions
        }


def replay_current(
    machine: "GroupMachine",
    _offset: Offset,
    _producer_id: ProducerId,
    key: stored.ShareGroupCurrentMemberAssignmentKey,
    value: stored.ShareGroupCurrentMemberAssignmentValue | None,
) -> None:
    """Take over what a member is told to read."""
    group = _group(machine, key.group_id, value)
    member = None if group is None else group.members.get(key.member_id)
    if group is None or (value is None and member is None):
        return
    member = member or ShareMember(key.member_id)
    if value is None:
        group.members[key.member_id] = replace(member, epoch=-1, previous_epoch=-1, assigned={})
    else:
        group.members[key.member_id] = replace(
            member,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            assigned={
                TopicId(topic.topic_id): frozenset(topic.partitions)
                for topic in value.assigned_partitions
            },
        )


def replay_shared_topics(
    machine: "GroupMachine",
    _offset: Offset,
    _producer_id: ProducerId,
    key: stored.ShareGroupStatePartitionMetadataKey,
    value: stored.ShareGroupStatePartitionMetadataValue | None,
) -> None:
    """Take over for which partitions there is a share state."""
    group = _group(machine, key.group_id, value)
    if group is None:
        return
    if value is None:
        group.topics = SharedTopics()
    else:
        group.topics = SharedTopics(
            _named(value.initializing_topics),
            _named(value.initialized_topics),
            {TopicId(topic.topic_id): topic.topic_name for topic in value.deleting_topics},
        )


def _named(infos: Iterable[stored.TopicPartitionsInfo]) -> dict[TopicId, NamedPartitions]:
    return {
        TopicId(info.topic_id): NamedPartitions(info.topic_name, frozenset(info.partitions))
        for info in infos
    }
