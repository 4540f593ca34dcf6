"""A member's way to its target: a new epoch, a new target, a step of the member."""

from collections.abc import Collection, Container, Sequence
from dataclasses import replace
from typing import NamedTuple

from moldau.coordination.decision import Effect
from moldau.coordination.refusal import Refusal
from moldau.groups.consumer.draft import ConsumerGroupDraft
from moldau.groups.consumer.member import ConsumerMember, MemberState, Owned
from moldau.groups.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    no_partition_metadata_record,
    no_regex_record,
)
from moldau.groups.consumer.regexes import check_regex
from moldau.groups.consumer.targets import renew_target, topic_ids_of
from moldau.groups.consumer.timers import MemberRebalanceTimer
from moldau.groups.context import GroupContext
from moldau.groups.modern.partitions import NO_PARTITIONS, Partitions
from moldau.groups.modern.record_size import check_size
from moldau.groups.modern.topic_hash import metadata_hash
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.kernel.ids import TopicId
from moldau.protocol.errors import ErrorCode


def check_state(member: ConsumerMember, owned: Partitions | None) -> None:
    """Refuse a member of which a later release told something else, unless it begins again."""
    if member.state is MemberState.UNKNOWN and (owned is None or owned):
        raise Refusal(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. The member must abandon all its"
            " partitions and rejoin.",
        )


class Reconciliation(NamedTuple):
    """What a member's next step depends on, beside the member."""

    target_epoch: int
    target: Partitions
    topic_ids: Collection[TopicId]
    """What the member reads now; a target may be older than that."""
    taken: Container[tuple[TopicId, int]]
    """What a member has, or has not given up yet."""
    owned: Partitions | None
    """What the member says it has; None if it says nothing."""
    has_other_topics: bool
    """Whether the member changed with this request what it reads."""

    def next_of(self, member: ConsumerMember) -> ConsumerMember:
        """Return the member a step further, or as it is if it has to wait.

        ::

            STABLE                 at the target's epoch: stays
            UNREVOKED_PARTITIONS   until it says that it has given up what it should
            UNRELEASED_PARTITIONS  looks at each heartbeat what has become free
        """
        match member.state:
            case MemberState.STABLE if member.epoch == self.target_epoch:
                return self._without_other_topics(member)
            case MemberState.UNREVOKED_PARTITIONS if self._uses(member.revoking):
                return self._without_other_topics(member)
            case MemberState.UNKNOWN:
                return self._step(member, self.target_epoch)
            case _:
                return self._step(member, member.epoch)

    def _uses(self, partitions: Owned) -> bool:
        """Whether the member has any of these, as far as it has told."""
        if self.owned is None:
            return True
        return any(
            index in self.owned.get(topic_id, ())
            for topic_id, indexes in partitions.items()
            for index in indexes
        )

    def _step(self, member: ConsumerMember, epoch: int) -> ConsumerMember:
        assigned: dict[TopicId, dict[int, int]] = {}
        revoking: dict[TopicId, dict[int, int]] = {}
        target = {
            topic_id: indexes
            for topic_id, indexes in self.target.items()
            if topic_id in self.topic_ids
        }
        for topic_id, indexes in member.assigned.items():
            wanted = target.get(topic_id, frozenset())
            for index, since in indexes.items():
                kept = assigned if index in wanted else revoking
                kept.setdefault(topic_id, {})[index] = since
        if revoking and self._uses(revoking):
            # It stays in its epoch, and keeps what it gives up until it says that it has.
            return member.moved(epoch, MemberState.UNREVOKED_PARTITIONS, assigned, revoking)
        state = MemberState.STABLE
        for topic_id, wanted in target.items():
            for index in sorted(wanted - assigned.get(topic_id, NO_PARTITIONS).keys()):
                if self._is_free(member, topic_id, index):
                    assigned.setdefault(topic_id, {})[index] = self.target_epoch
                else:
                    state = MemberState.UNRELEASED_PARTITIONS
        return member.moved(self.target_epoch, state, assigned, {})

    def _is_free(self, member: ConsumerMember, topic_id: TopicId, index: int) -> bool:
        # What it was to give up itself it may as well keep.
        is_own = index in member.revoking.get(topic_id, ())
        return is_own or (topic_id, index) not in self.taken

    def _without_other_topics(self, member: ConsumerMember) -> ConsumerMember:
        """Take away at once what the member does not read any more."""
        if not self.has_other_topics:
            return member
        assigned = {
            topic_id: indexes
            for topic_id, indexes in member.assigned.items()
            if topic_id in self.topic_ids
        }
        if len(assigned) == len(member.assigned):
            return member
        revoking = dict(member.revoking)
        for topic_id in member.assigned.keys() - assigned.keys():
            revoking[topic_id] = {**member.assigned[topic_id], **revoking.get(topic_id, {})}
        if self._uses(revoking):
            return member.moved(member.epoch, MemberState.UNREVOKED_PARTITIONS, assigned, revoking)
        return replace(member, previous_epoch=member.epoch, assigned=assigned)


def advance(
    shelf: GroupShelf,
    draft: ConsumerGroupDraft,
    member: ConsumerMember,
    owned: Partitions | None,
    now: Instant,
) -> ConsumerMember:
    """Take a member as it is by its request, and return it a step further."""
    context = shelf.context
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
    refreshed = shelf.consumers.refreshed(group_id)
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
    draft: ConsumerGroupDraft,
    member: ConsumerMember,
    owned: Partitions | None,
    *,
    has_other_topics: bool,
) -> ConsumerMember:
    group = draft.group
    if member.is_reconciled_to(group.target_epoch) and not has_other_topics:
        return member
    further = Reconciliation(
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


def _renew_epoch(context: GroupContext, draft: ConsumerGroupDraft, *, is_new: bool) -> None:
    """Give the group a new epoch if it is to have one, or its topics have changed."""
    group = draft.group
    topics = metadata_hash(group.topic_names(), context.image)
    if is_new or topics != group.metadata_hash:
        draft.write(epoch_record(group.group_id, group.epoch + 1, topics))
    if group.has_partition_metadata:
        draft.write(no_partition_metadata_record(group.group_id))


def expect_revocation(
    shelf: GroupShelf,
    group_id: str,
    before: ConsumerMember,
    member: ConsumerMember,
    now: Instant,
) -> Sequence[Effect]:
    """Give a member its time to give up partitions, or have it not hurry any more."""
    timer = MemberRebalanceTimer(group_id, member.member_id)
    if member.state is not MemberState.UNREVOKED_PARTITIONS:
        shelf.consumers.deadlines.clear(timer)
        return ()
    if member == before:
        return ()
    at = now.monotonic + member.rebalance_timeout_ms / 1000
    return shelf.consumers.deadlines.set(timer, at)
