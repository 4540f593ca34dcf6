"""A member's way to its target: gives up first, then gets what others have given up."""

from collections.abc import Collection, Container
from dataclasses import replace
from typing import NamedTuple

from moldau.coordination.refusal import Refusal
from moldau.groups.consumer.member import ConsumerMember, MemberState, Owned
from moldau.groups.modern.partitions import NO_PARTITIONS, Partitions
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


class Reconciling(NamedTuple):
    """What a member's next step depends on, beside the member."""

    target_epoch: int
    target: Partitions
    topic_ids: Collection[TopicId]
    """What the member reads now; a target may be older than that."""
    taken: Container[tuple[TopicId, int]]
    """What somebody has, or has not given up yet."""
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
