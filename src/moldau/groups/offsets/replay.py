"""What is recorded of offsets takes effect."""

from typing import TYPE_CHECKING

from moldau.groups.offsets.committed import Committed
from moldau.groups.offsets.simple_group import SimpleGroup
from moldau.kernel.ids import Offset, ProducerId
from moldau.protocol.stored.offsets import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

if TYPE_CHECKING:
    from moldau.groups.machine import GroupMachine


def replay_offset(
    machine: "GroupMachine",
    offset: Offset,
    producer_id: ProducerId,
    key: OffsetCommitKey,
    value: OffsetCommitValue | None,
) -> None:
    """Have an offset count, or forget it; a group that was not there is there with it."""
    offsets = machine.offsets
    group_id = key.group
    if value is None:
        offsets.remove(group_id, key.topic, key.partition)
        return
    if group_id not in machine.groups:
        machine.groups[group_id] = SimpleGroup(group_id)
    committed = Committed(
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
    machine: "GroupMachine",
    offset: Offset,
    producer_id: ProducerId,
    key: LegacyOffsetCommitKey,
    value: LegacyOffsetCommitValue | None,
) -> None:
    """Have an offset count that was recorded before Kafka 0.9."""
    newer = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
    if value is None:
        replay_offset(machine, offset, producer_id, newer, None)
        return
    replay_offset(
        machine,
        offset,
        producer_id,
        newer,
        OffsetCommitValue(
            offset=value.offset,
            metadata=value.metadata,
            commit_timestamp=value.commit_timestamp,
        ),
    )
