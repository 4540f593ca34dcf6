"""A consumer group becomes a classic group: all members that are left speak only that."""

from moldau.coordination.command import Ticket
from moldau.coordination.decision import Decision, UnaskedDecision
from moldau.groups.classic.decision_builder import DecisionBuilder
from moldau.groups.classic.group import CONSUMER
from moldau.groups.classic.member import ClassicMember
from moldau.groups.classic.membership import ClassicGroupState, ClassicMembers
from moldau.groups.classic.rebalance import prepare
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import ConsumerMember
from moldau.groups.migration.embedded_protocol import write_assignment
from moldau.groups.migration.policy import may_downgrade
from moldau.groups.modern.partitions import Partitions
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.protocol.messages.join_group import JoinGroupResponse


def try_downgrade(
    shelf: GroupShelf,
    group: ConsumerGroup,
    rest: ConsumerGroup,
    now: Instant,
    waiting: tuple[str, Ticket[JoinGroupResponse]] | None = None,
) -> UnaskedDecision | None:
    """Have a group go on as a classic one with the members of what is left; all join again.

    One of them may have asked to join just now, and waits for its answer. None if some member
    speaks more than the classic protocol, if it may not be, or if all is too much for one record.
    """
    if not _may_be_classic(shelf, rest):
        return None
    membership = ClassicMembers(now.wall_ms)
    for _, member in sorted(rest.members.items()):
        membership.add(_converted(member), CONSUMER)
    # What is recorded is a generation that no member is in: if this coordinator goes before the
    # next one is made, all have to join again, for some may not have all of their part yet.
    membership.generation = rest.epoch + 1
    membership.protocol = membership.choose_protocol()
    membership.state = ClassicGroupState.STABLE
    for each in membership.members.values():
        said = each.metadata(membership.protocol)
        owned = _owned(rest.members[each.member_id])
        each.assignment = write_assignment(owned, said, shelf.context.image)
    record = membership.record(group.group_id)
    if not record.fits(shelf.context.record_bytes_max):
        return None
    membership.generation = rest.epoch
    for member_id in group.members:
        shelf.consumers.forget(group.group_id, member_id)
    shelf.consumers.forget_group(group.group_id)
    shelf.forming[group.group_id] = membership
    draft = DecisionBuilder(shelf, group.group_id, membership, now)
    for each in membership.members.values():
        draft.renew(each)
    if waiting is not None:
        member_id, ticket = waiting
        draft.wait_joined(membership.members[member_id], ticket)
    prepare(draft)
    decision: UnaskedDecision = draft.decision()
    records = [*group.tombstones(), record, *decision.records]
    return Decision(records, effects=decision.effects, is_atomic=False)


def _may_be_classic(shelf: GroupShelf, rest: ConsumerGroup) -> bool:
    members = rest.members.values()
    return (
        bool(members)
        and all(member.classic is not None for member in members)
        and may_downgrade(shelf.context)
        and len(members) <= shelf.context.settings.group_max_size
    )


def _owned(member: ConsumerMember) -> Partitions:
    """Return what a member may have, and not what it should have: another may have that still.

    A member that joins with the consumer protocol before all have joined again would have it
    given away twice.
    """
    topic_ids = member.assigned.keys() | member.revoking.keys()
    return {
        topic_id: frozenset(
            [*member.assigned.get(topic_id, ()), *member.revoking.get(topic_id, ())]
        )
        for topic_id in topic_ids
    }


def _converted(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None, "it speaks the classic protocol"
    return ClassicMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.classic.session_timeout_ms,
        protocols=tuple((each.name, each.metadata) for each in member.classic.protocols),
    )
