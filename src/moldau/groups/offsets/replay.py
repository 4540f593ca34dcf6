"""What is recorded of offsets takes effect."""

from moldau.groups.offsets.group_offset import GroupOffset
from moldau.groups.offsets.simple_group import SimpleGroup
from moldau.groups.shelf import GroupShelf
from moldau.kernel.ids import Offset, ProducerId
from moldau.protocol.stored.offsets import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)


def replay_offset(
    shelf: GroupShelf,
    offset: Offset,
    producer_id: ProducerId,
    key: OffsetCommitKey,
    value: OffsetCommitValue | None,
) -> None:
    """Have an offset count, or forget it; a group that was not there is there with it."""
    offsets = shelf.offsets
    group_id = key.group
    if value is None:
        offsets.remove(group_id, key.topic, key.partition)
        return
    if group_id not in shelf.groups:
        shelf.groups[group_id] = SimpleGroup(group_id)
    committed = GroupOffset(
        Offset(value.offset),
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        offsets.shared_topic_id(value.topic_id),
        offset,
    )
    offsets.put(group_id, key.topic, key.partition, committed, producer_id)


def replay_legacy_offset(
    shelf: GroupShelf,
    offset: Offset,
    producer_id: ProducerId,
    key: LegacyOffsetCommitKey,
    value: LegacyOffsetCommitValue | None,
) -> None:
    """Have an offset count that was recorded before Kafka 0.9."""
    newer = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
    if value is None:
        replay_offset(shelf, offset, producer_id, newer, None)
        return
    replay_offset(
        shelf,
        offset,
        producer_id,
        newer,
        OffsetCommitValue(
            offset=value.offset,
            metadata=value.metadata,
            commit_timestamp=value.commit_timestamp,
        ),
    )
