"""A classic group becomes a consumer group: its members go on as they are."""

from collections.abc import Iterator

from moldau.coordination.decision import CancelTimer, Effect, Reply
from moldau.coordination.refusal import Refusal
from moldau.groups.classic.decision_builder import (
    ClassicJoinTimer,
    ClassicSessionTimer,
    ClassicSyncTimer,
    refused_join,
    refused_sync,
)
from moldau.groups.classic.group import CONSUMER, ClassicGroup
from moldau.groups.classic.member import ClassicMember
from moldau.groups.consumer.draft import ConsumerGroupDraft
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import ClassicFace, ClassicProtocol, ConsumerMember
from moldau.groups.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    target_epoch_record,
    target_record,
)
from moldau.groups.migration.embedded_protocol import read_assignment, read_subscription
from moldau.groups.migration.policy import may_upgrade
from moldau.groups.modern.partitions import Partitions
from moldau.groups.shelf import GroupShelf
from moldau.kernel.errors import ProtocolError
from moldau.metadata.image import ClusterImage
from moldau.protocol.errors import ErrorCode


def upgrade(shelf: GroupShelf, group: ClassicGroup) -> ConsumerGroupDraft:
    """Return the group as a consumer group; `Refusal` if it cannot be one.

    All members have what they were given last, and come again to hear of what follows.
    """
    _check(shelf, group)
    group_id, generation = group.group_id, group.membership.generation
    draft = ConsumerGroupDraft(ConsumerGroup(group_id), before=group.tombstones())
    try:
        members = [
            _converted(group, member, shelf.context.image)
            for member in group.membership.members.values()
        ]
    except ProtocolError:
        raise _refusal(group_id, "the embedded consumer protocol is malformed") from None
    draft.write(*(member_record(group_id, member) for member, _ in members))
    draft.write(epoch_record(group_id, generation, 0))
    draft.write(*(target_record(group_id, member.member_id, target) for member, target in members))
    draft.write(target_epoch_record(group_id, generation, 0))
    draft.write(*(current_record(group_id, member) for member, _ in members))
    draft.effects.extend(_farewell(group))
    return draft


def _check(shelf: GroupShelf, group: ClassicGroup) -> None:
    if not may_upgrade(shelf.context):
        raise _refusal(group.group_id, "online upgrade is disabled")
    if group.protocol_type != CONSUMER:
        raise _refusal(group.group_id, "the group does not use the consumer embedded protocol")
    size_max = shelf.context.settings.group_consumer_max_size
    if len(group.membership.members) > size_max:
        raise _refusal(group.group_id, "the group size exceeds the consumer group maximum size")


def _refusal(group_id: str, why: str) -> Refusal:
    words = f"Cannot upgrade classic group {group_id} to consumer group because {why}."
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, words)


def _converted(
    group: ClassicGroup, member: ClassicMember, image: ClusterImage
) -> tuple[ConsumerMember, Partitions]:
    membership = group.membership
    said = member.metadata(membership.protocol) or member.protocols[0][1]
    subscription = read_subscription(said)
    target = read_assignment(member.assignment, image)
    generation = membership.generation
    return (
        ConsumerMember(
            member.member_id,
            instance_id=member.instance_id,
            rack_id=subscription.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            topic_names=frozenset(subscription.topics),
            classic=ClassicFace(
                member.session_timeout_ms,
                tuple(ClassicProtocol(name, metadata) for name, metadata in member.protocols),
            ),
            epoch=generation,
            previous_epoch=generation,
            assigned={
                topic_id: dict.fromkeys(indexes, generation) for topic_id, indexes in target.items()
            },
        ),
        target,
    )


def _farewell(group: ClassicGroup) -> Iterator[Effect]:
    """Have members that wait come again, and cancel the timers of the classic group."""
    yield CancelTimer(ClassicJoinTimer(group.group_id))
    yield CancelTimer(ClassicSyncTimer(group.group_id))
    membership = group.membership
    for member_id in [*membership.members, *sorted(membership.pending)]:
        yield CancelTimer(ClassicSessionTimer(group.group_id, member_id))
    code = ErrorCode.REBALANCE_IN_PROGRESS
    for member in membership.members.values():
        if member.join is not None:
            yield Reply(member.join, refused_join(member.member_id, code))
        if member.sync is not None:
            yield Reply(member.sync, refused_sync(code))
