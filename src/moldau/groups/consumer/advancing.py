"""What follows from a member's request: a new epoch, a new target, a step of the member."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.coordination.machine import Effect
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import ConsumerMember, MemberState
from moldau.groups.consumer.reconciling import Reconciling, check_state
from moldau.groups.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    no_partition_metadata_record,
    no_regex_record,
)
from moldau.groups.consumer.regexes import check_regex
from moldau.groups.consumer.soft import RebalanceTimer
from moldau.groups.consumer.targets import renew_target, topic_ids_of
from moldau.groups.context import GroupContext
from moldau.groups.modern.draft import Draft
from moldau.groups.modern.partitions import Partitions
from moldau.groups.modern.record_size import check_size
from moldau.groups.modern.topic_hash import metadata_hash
from moldau.kernel.clock import Instant

if TYPE_CHECKING:
    from moldau.groups.machine import GroupMachine


def advance(
    machine: "GroupMachine",
    draft: Draft[ConsumerGroup],
    member: ConsumerMember,
    owned: Partitions | None,
    now: Instant,
) -> ConsumerMember:
    """Take a member as it is by its request, and return it a step further."""
    context = machine.context
    group_id = draft.group.group_id
    known = draft.group.members.get(member.member_id)
    before = known or ConsumerMember(member.member_id)
    has_other_regex = member.topic_regex != before.topic_regex
    has_other_names = member.topic_names != before.topic_names
    check_state(member, owned)
    if has_other_regex and member.topic_regex not in draft.group.regex_users:
        check_regex(member.topic_regex)
    if member != known:
        draft.write(member_record(group_id, member))
    if has_other_regex and before.topic_regex in draft.group.unused_regexes():
        draft.write(no_regex_record(group_id, before.topic_regex))
    # What a new expression stands for is found later, and has an epoch of its own then.
    is_found = not member.topic_regex or member.topic_regex in draft.group.regexes
    is_new = has_other_names or (has_other_regex and is_found)
    refreshed = machine.consumers.refreshed(group_id)
    if is_new or refreshed.topics_version != context.topics_version:
        _renew_epoch(context, draft, is_new=is_new)
    renew_target(context, draft, now)
    has_other_topics = has_other_names or has_other_regex
    member = _reconciled(context, draft, member, owned, has_other_topics=has_other_topics)
    check_size(context, draft.records)
    refreshed.topics_version = context.topics_version
    return member


def _reconciled(
    context: GroupContext,
    draft: Draft[ConsumerGroup],
    member: ConsumerMember,
    owned: Partitions | None,
    *,
    has_other_topics: bool,
) -> ConsumerMember:
    group = draft.group
    if member.is_reconciled_to(group.target_epoch) and not has_other_topics:
        return member
    further = Reconciling(
        target_epoch=group.target_epoch,
        target=group.target_of(member.member_id),
        topic_ids=topic_ids_of(group, member, context.image),
        taken=group.owners,
        owned=owned,
        has_other_topics=has_other_topics,
    ).next_of(member)
    if further != member:
        draft.write(current_record(group.group_id, further))
    return further


def _renew_epoch(context: GroupContext, draft: Draft[ConsumerGroup], *, is_new: bool) -> None:
    """Give the group a new epoch if it is to have one, or its topics have changed."""
    group = draft.group
    topics = metadata_hash(group.topic_names(), context.image)
    if is_new or topics != group.metadata_hash:
        draft.write(epoch_record(group.group_id, group.epoch + 1, topics))
    if group.has_partition_metadata:
        draft.write(no_partition_metadata_record(group.group_id))


def expect_revocation(
    machine: "GroupMachine",
    group_id: str,
    before: ConsumerMember,
    member: ConsumerMember,
    now: Instant,
) -> Sequence[Effect]:
    """Give a member its time to give up partitions, or have it not hurry any more."""
    timer = RebalanceTimer(group_id, member.member_id)
    if member.state is not MemberState.UNREVOKED_PARTITIONS:
        machine.consumers.deadlines.clear(timer)
        return ()
    if member == before:
        return ()
    at = now.monotonic + member.rebalance_timeout_ms / 1000
    return machine.consumers.deadlines.set(timer, at)
