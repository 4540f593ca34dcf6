"""The records of share groups; without a value they take back what was said."""

from moldau.coordination.stored_record import StoredRecord
from moldau.groups.modern.partitions import Partitions
from moldau.groups.share.member import ShareGroupMember
from moldau.groups.share.topics import PartitionsByTopic, SharedTopics
from moldau.protocol.stored import share_groups as stored

STABLE = 0
"""The only state of a member's assignment: a share group takes nothing away step by step."""


def epoch(group_id: str, value: tuple[int, int] | None) -> StoredRecord:
    """A group's epoch, and the hash of what its members read."""
    return StoredRecord(
        stored.ShareGroupMetadataKey(group_id=group_id),
        None
        if value is None
        else stored.ShareGroupMetadataValue(epoch=value[0], metadata_hash=value[1]),
    )


def member(group_id: str, member_id: str, value: ShareGroupMember | None) -> StoredRecord:
    """What a member says of itself."""
    return StoredRecord(
        stored.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id),
        None
        if value is None
        else stored.ShareGroupMemberMetadataValue(
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=value.subscribed,
        ),
    )


def target_epoch(group_id: str, value: tuple[int, int] | None) -> StoredRecord:
    """For which epoch of the group the targets are, and when they were made."""
    return StoredRecord(
        stored.ShareGroupTargetAssignmentMetadataKey(group_id=group_id),
        None
        if value is None
        else stored.ShareGroupTargetAssignmentMetadataValue(
            assignment_epoch=value[0], assignment_timestamp=value[1]
        ),
    )


def target(group_id: str, member_id: str, value: Partitions | None) -> StoredRecord:
    """What a member shall read."""
    return StoredRecord(
        stored.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        None
        if value is None
        else stored.ShareGroupTargetAssignmentMemberValue(
            topic_partitions=[
                stored.TopicPartition(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in value.items()
            ]
        ),
    )


def current_assignment(
    group_id: str, member_id: str, value: ShareGroupMember | None
) -> StoredRecord:
    """What a member is told to read, and in which epoch."""
    return StoredRecord(
        stored.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id),
        None
        if value is None
        else stored.ShareGroupCurrentMemberAssignmentValue(
            member_epoch=value.epoch,
            previous_member_epoch=value.previous_epoch,
            state=STABLE,
            assigned_partitions=[
                stored.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in value.assigned.items()
            ],
        ),
    )


def shared_topics(group_id: str, value: SharedTopics | None) -> StoredRecord:
    """For which partitions there is a share state."""
    return StoredRecord(
        stored.ShareGroupStatePartitionMetadataKey(group_id=group_id),
        None
        if value is None
        else stored.ShareGroupStatePartitionMetadataValue(
            initializing_topics=_infos(value.initializing),
            initialized_topics=_infos(value.initialized),
            deleting_topics=[
                stored.TopicInfo(topic_id=topic_id, topic_name=name)
                for topic_id, name in value.deleting.items()
            ],
        ),
    )


def _infos(topics: PartitionsByTopic) -> list[stored.TopicPartitionsInfo]:
    return [
        stored.TopicPartitionsInfo(
            topic_id=topic_id, topic_name=topic.name, partitions=sorted(topic.partitions)
        )
        for topic_id, topic in topics.items()
    ]
