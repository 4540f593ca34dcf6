"""What each record of a consumer group makes of it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import (
    LEAVING,
    ClassicFace,
    ClassicProtocol,
    ConsumerMember,
    MemberState,
    owned_of,
)
from moldau.groups.modern.partitions import partitions_of
from moldau.groups.shelf import GroupShelf
from moldau.kernel.ids import Offset, ProducerId
from moldau.protocol.schema import Message
from moldau.protocol.stored.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

ConsumerGroupKey: TypeAlias = (
    ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupRegularExpressionKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupTargetAssignmentMetadataKey
)

_Replay = Callable[[ConsumerGroup, Any, Any], None]


def replay_consumer_group(
    shelf: GroupShelf,
    _offset: Offset,
    _producer_id: ProducerId,
    key: ConsumerGroupKey,
    value: Message | None,
) -> None:
    """Apply a record to its group; one that takes something back makes none."""
    group = shelf.groups.get(key.group_id)
    if not isinstance(group, ConsumerGroup):
        if value is None:
            return
        # Of another kind it was only as long as there was nothing but offsets.
        group = shelf.groups[key.group_id] = ConsumerGroup(key.group_id)
    if value is None and isinstance(key, ConsumerGroupMetadataKey):
        # It is the last record of a group that is deleted.
        del shelf.groups[key.group_id]
    else:
        replay_record(group, key, value)


def replay_record(group: ConsumerGroup, key: Message, value: Message | None) -> None:
    """Apply one of a group's records; the one that ends the group changes nothing of it."""
    REPLAY[type(key)](group, key, value)


def _epoch(
    group: ConsumerGroup, _key: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None
) -> None:
    if value is not None:
        group.epoch = value.epoch
        group.metadata_hash = value.metadata_hash


def _partition_metadata(
    group: ConsumerGroup,
    _key: ConsumerGroupPartitionMetadataKey,
    value: ConsumerGroupPartitionMetadataValue | None,
) -> None:
    group.has_partition_metadata = value is not None


def _target_epoch(
    group: ConsumerGroup,
    _key: ConsumerGroupTargetAssignmentMetadataKey,
    value: ConsumerGroupTargetAssignmentMetadataValue | None,
) -> None:
    group.target_epoch = -1 if value is None else value.assignment_epoch
    group.target_ms = 0 if value is None else value.assignment_timestamp


def _target(
    group: ConsumerGroup,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.targets.pop(key.member_id, None)
    else:
        group.targets[key.member_id] = partitions_of(value.topic_partitions)


def _regex(
    group: ConsumerGroup,
    key: ConsumerGroupRegularExpressionKey,
    value: ConsumerGroupRegularExpressionValue | None,
) -> None:
    if value is None:
        group.regexes.pop(key.regular_expression, None)
    else:
        group.regexes[key.regular_expression] = frozenset(value.topics)


def _member(
    group: ConsumerGroup,
    key: ConsumerGroupMemberMetadataKey,
    value: ConsumerGroupMemberMetadataValue | None,
) -> None:
    if value is None:
        group.remove(key.member_id)
        return
    classic = value.classic_member_metadata
    group.put(
        replace(
            group.members.get(key.member_id) or ConsumerMember(key.member_id),
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topic_names=frozenset(value.subscribed_topic_names),
            topic_regex=value.subscribed_topic_regex or "",
            server_assignor=value.server_assignor,
            classic=None
            if classic is None
            else ClassicFace(
                classic.session_timeout_ms,
                tuple(
                    ClassicProtocol(each.name, bytes(each.metadata))
                    for each in classic.supported_protocols
                ),
            ),
        )
    )


def _current(
    group: ConsumerGroup,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.put(
            replace(
                member or ConsumerMember(key.member_id),
                epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch,
                state=MemberState(value.state),
                assigned=owned_of(value.assigned_partitions, value.member_epoch),
                revoking=owned_of(value.partitions_pending_revocation, value.member_epoch),
            )
        )
    elif member is not None:
        nothing = ConsumerMember(key.member_id)
        group.put(
            replace(
                member,
                epoch=LEAVING,
                previous_epoch=LEAVING,
                state=nothing.state,
                assigned=nothing.assigned,
                revoking=nothing.revoking,
            )
        )


REPLAY: Final[Mapping[type[Message], _Replay]] = {
    ConsumerGroupMetadataKey: _epoch,
    ConsumerGroupPartitionMetadataKey: _partition_metadata,
    ConsumerGroupTargetAssignmentMetadataKey: _target_epoch,
    ConsumerGroupTargetAssignmentMemberKey: _target,
    ConsumerGroupRegularExpressionKey: _regex,
    ConsumerGroupMemberMetadataKey: _member,
    ConsumerGroupCurrentMemberAssignmentKey: _current,
}
"""By type of key."""
