"""Share groups, made from their records."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from moldau.groups.share.group import FIRST_EPOCH, ShareGroup
from moldau.groups.share.member import ShareGroupMember
from moldau.groups.share.topics import NamedPartitions, SharedTopics
from moldau.groups.shelf import GroupShelf
from moldau.kernel.ids import Offset, ProducerId, TopicId
from moldau.protocol.schema import Message
from moldau.protocol.stored import share_groups as stored

ShareGroupKey: TypeAlias = (
    stored.ShareGroupCurrentMemberAssignmentKey
    | stored.ShareGroupMemberMetadataKey
    | stored.ShareGroupMetadataKey
    | stored.ShareGroupStatePartitionMetadataKey
    | stored.ShareGroupTargetAssignmentMemberKey
    | stored.ShareGroupTargetAssignmentMetadataKey
)

_Replay = Callable[[ShareGroup, Any, Any], None]


def _epoch(
    group: ShareGroup,
    _key: stored.ShareGroupMetadataKey,
    value: stored.ShareGroupMetadataValue | None,
) -> None:
    """Take over a group's epoch."""
    if value is not None:
        group.epoch = value.epoch
        group.metadata_hash = value.metadata_hash


def _member(
    group: ShareGroup,
    key: stored.ShareGroupMemberMetadataKey,
    value: stored.ShareGroupMemberMetadataValue | None,
) -> None:
    """Take over what a member says of itself."""
    if value is None:
        group.members.pop(key.member_id, None)
        group.deadlines.pop(key.member_id, None)
    else:
        group.members[key.member_id] = replace(
            group.members.get(key.member_id, ShareGroupMember(key.member_id)),
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed=tuple(value.subscribed_topic_names),
        )


def _target_epoch(
    group: ShareGroup,
    _key: stored.ShareGroupTargetAssignmentMetadataKey,
    value: stored.ShareGroupTargetAssignmentMetadataValue | None,
) -> None:
    """Take over for which epoch the targets are."""
    group.assignment_epoch = FIRST_EPOCH if value is None else value.assignment_epoch
    group.assignment_ms = 0 if value is None else value.assignment_timestamp


def _target(
    group: ShareGroup,
    key: stored.ShareGroupTargetAssignmentMemberKey,
    value: stored.ShareGroupTargetAssignmentMemberValue | None,
) -> None:
    """Take over what a member shall read."""
    if value is None:
        group.targets.pop(key.member_id, None)
    else:
        group.targets[key.member_id] = {
            TopicId(topic.topic_id): frozenset(topic.partitions) for topic in value.topic_partitions
        }


def _current(
    group: ShareGroup,
    key: stored.ShareGroupCurrentMemberAssignmentKey,
    value: stored.ShareGroupCurrentMemberAssignmentValue | None,
) -> None:
    """Take over what a member is told to read."""
    member = group.members.get(key.member_id)
    if value is None and member is None:
        return
    member = member or ShareGroupMember(key.member_id)
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


def _shared_topics(
    group: ShareGroup,
    _key: stored.ShareGroupStatePartitionMetadataKey,
    value: stored.ShareGroupStatePartitionMetadataValue | None,
) -> None:
    """Take over for which partitions there is a share state."""
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


REPLAY: Final[Mapping[type[Message], _Replay]] = {
    stored.ShareGroupMetadataKey: _epoch,
    stored.ShareGroupMemberMetadataKey: _member,
    stored.ShareGroupTargetAssignmentMetadataKey: _target_epoch,
    stored.ShareGroupTargetAssignmentMemberKey: _target,
    stored.ShareGroupCurrentMemberAssignmentKey: _current,
    stored.ShareGroupStatePartitionMetadataKey: _shared_topics,
}


def replay_share_group(
    shelf: GroupShelf,
    _offset: Offset,
    _producer_id: ProducerId,
    key: ShareGroupKey,
    value: Message | None,
) -> None:
    """Apply a record to its group; one that takes something back makes none."""
    group = shelf.groups.get(key.group_id)
    if not isinstance(group, ShareGroup):
        if value is None:
            return
        group = shelf.forming_shares.pop(key.group_id, None) or ShareGroup(key.group_id)
        shelf.groups[key.group_id] = group
    if value is None and isinstance(key, stored.ShareGroupMetadataKey):
        # It is the last record of a group that is deleted.
        del shelf.groups[key.group_id]
    else:
        REPLAY[type(key)](group, key, value)
