"""The records of a consumer group in __consumer_offsets."""

from collections.abc import Iterable, Iterator

from moldau.coordination.stored_record import StoredRecord
from moldau.groups.consumer.member import ConsumerMember, Owned
from moldau.groups.modern.partitions import Partitions
from moldau.protocol.stored.consumer_groups import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> StoredRecord:
    """Return what says that a group has a new epoch, and of which topics."""
    return StoredRecord(
        ConsumerGroupMetadataKey(group_id=group_id),
        ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def member_record(group_id: str, member: ConsumerMember) -> StoredRecord:
    """Return what says a member's identity, and what it wants to read."""
    classic = member.classic
    return StoredRecord(
        ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topic_names),
            subscribed_topic_regex=member.topic_regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.server_assignor,
            classic_member_metadata=None
            if classic is None
            else ClassicMemberMetadata(
                session_timeout_ms=classic.session_timeout_ms,
                supported_protocols=[
                    ClassicProtocol(name=name, metadata=metadata)
                    for name, metadata in classic.protocols
                ],
            ),
        ),
    )


def target_epoch_record(group_id: str, epoch: int, wall_ms: int) -> StoredRecord:
    """Return what says that the targets of all members are those of an epoch, and since when."""
    return StoredRecord(
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=wall_ms
        ),
    )


def target_record(group_id: str, member_id: str, target: Partitions) -> StoredRecord:
    """Return what says which partitions a member is to get."""
    return StoredRecord(
        ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                TopicPartition(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in sorted(target.items())
            ]
        ),
    )


def current_record(group_id: str, member: ConsumerMember) -> StoredRecord:
    """Return what says how far a member came, and which partitions it has."""
    return StoredRecord(
        ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            assigned_partitions=_listed(member.assigned),
            partitions_pending_revocation=_listed(member.revoking),
        ),
    )


def regex_record(
    group_id: str, regex: str, topic_names: Iterable[str], wall_ms: int
) -> StoredRecord:
    """Return what says which topics a regular expression stands for.

    The version is that of the metadata it was looked for in; with 0 any coordinator that comes
    after looks again.
    """
    return StoredRecord(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex),
        ConsumerGroupRegularExpressionValue(
            topics=sorted(topic_names), version=0, timestamp=wall_ms
        ),
    )


def no_regex_record(group_id: str, regex: str) -> StoredRecord:
    """Return what says that no member uses a regular expression any more."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    return StoredRecord(key, None)


def no_partition_metadata_record(group_id: str) -> StoredRecord:
    """Return what takes back a record of releases before 4.2; a hash is in its place."""
    return StoredRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def no_member_records(group_id: str, member_id: str) -> Iterator[StoredRecord]:
    """Return what removes a member: first that it has no partitions any more."""
    for key_type in (
        ConsumerGroupCurrentMemberAssignmentKey,
        ConsumerGroupTargetAssignmentMemberKey,
        ConsumerGroupMemberMetadataKey,
    ):
        yield StoredRecord(key_type(group_id=group_id, member_id=member_id), None)


def no_group_records(
    group_id: str, member_ids: Iterable[str], regexes: Iterable[str]
) -> Iterator[StoredRecord]:
    """Return what makes a group forgotten, in the order that Kafka wants to read it in."""
    member_ids = sorted(member_ids)
    for key_type in (
        ConsumerGroupCurrentMemberAssignmentKey,
        ConsumerGroupTargetAssignmentMemberKey,
    ):
        for member_id in member_ids:
            yield StoredRecord(key_type(group_id=group_id, member_id=member_id), None)
    yield StoredRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None)
    for member_id in member_ids:
        key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
        yield StoredRecord(key, None)
    for regex in sorted(regexes):
        yield no_regex_record(group_id, regex)
    yield no_partition_metadata_record(group_id)
    yield StoredRecord(ConsumerGroupMetadataKey(group_id=group_id), None)


def _listed(owned: Owned) -> list[TopicPartitions]:
    return [
        TopicPartitions(
            topic_id=topic_id,
            partitions=sorted(partitions),
            assignment_epochs=[partitions[index] for index in sorted(partitions)],
        )
        for topic_id, partitions in sorted(owned.items())
    ]
