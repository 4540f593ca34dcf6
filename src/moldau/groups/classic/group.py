"""A classic group: its record, and the membership that goes on from there."""

from collections.abc import Iterator
from typing import Final

from moldau.coordination.refusal import Refusal
from moldau.coordination.stored_record import StoredRecord
from moldau.groups.classic.membership import (
    NEVER_MS,
    ClassicGroupState,
    ClassicMembers,
    membership_of,
)
from moldau.groups.classic.subscription import subscribed_topics
from moldau.groups.group import GroupType
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.kernel.ids import Offset, ProducerId
from moldau.protocol.errors import ErrorCode
from moldau.protocol.stored.offsets import GroupMetadataKey, GroupMetadataValue

CONSUMER: Final = "consumer"
"""The protocol type of consumers of topics; other types are their members' own."""


class ClassicGroup:
    """A `groups.group.Group`; without a record it is one that has offsets, and no members yet."""

    type: Final = GroupType.CLASSIC

    def __init__(
        self,
        group_id: str,
        recorded: GroupMetadataValue | None = None,
        membership: ClassicMembers | None = None,
    ) -> None:
        self.group_id = group_id
        self.recorded = recorded
        """Durable: the last record."""
        self._membership = membership
        self._topics: tuple[int, frozenset[str] | None] | None = None

    @property
    def membership(self) -> ClassicMembers:
        """Soft: begins with what is recorded, when it is first asked for."""
        if self._membership is None:
            self._membership = membership_of(self.recorded)
        return self._membership

    @property
    def state_name(self) -> str:
        """Its state in Kafka's words."""
        return self.membership.state.value

    @property
    def protocol_type(self) -> str:
        """What the members are to each other; empty before the first came."""
        return self.membership.protocol_type or ""

    @property
    def is_empty(self) -> bool:
        """Whether it has no members, and none is waited for."""
        return self.membership.state is ClassicGroupState.EMPTY

    def check_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        epoch: int,
        *,
        is_transactional: bool,
        version: int,  # noqa: ARG002 - all versions are alike here
    ) -> None:
        """Refuse a commit unless it is of a member of that generation."""
        membership = self.membership
        if epoch < 0 and self.is_empty:
            # A client that is in no group, or an administrator.
            return
        if epoch >= 0 or member_id or instance_id is not None:
            membership.check_member(member_id, instance_id)
            if epoch != membership.generation:
                raise Refusal(
                    ErrorCode.ILLEGAL_GENERATION,
                    f"The group is in generation {membership.generation}.",
                )
        elif not is_transactional:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, "Only members may commit.")
        if not is_transactional and membership.state is ClassicGroupState.COMPLETING:
            # It has heard of the generation, and not yet what it is to read in it.
            raise Refusal(ErrorCode.REBALANCE_IN_PROGRESS, "The group rebalances.")

    def hear_of(self, member_id: str, now: Instant) -> None:
        """Keep up the session of a member: a commit counts as a heartbeat."""
        member = self.membership.members.get(member_id)
        if member is not None:
            session_end = now.monotonic + member.session_timeout_ms / 1000
            member.deadline = max(member.deadline, session_end)

    def check_offset_fetch(self, member_id: str | None, epoch: int) -> None:
        """Let every client know what is committed."""

    def check_offset_delete(self) -> None:
        """Refuse if members use offsets in ways that are not known here."""
        if not self.is_empty and self.protocol_type != CONSUMER:
            raise Refusal(ErrorCode.NON_EMPTY_GROUP, "The group has members.")

    def check_delete(self) -> None:
        """Refuse to delete a group that has members, or will have."""
        if not self.is_empty:
            raise Refusal(ErrorCode.NON_EMPTY_GROUP, "The group has members.")

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads a topic, as far as that can be known."""
        topics = self._subscribed_topics()
        return self.protocol_type == CONSUMER if topics is None else topic in topics

    def expires_offsets_since(self, commit_ms: int) -> int | None:
        """Count from when the group became empty; its members' offsets from their commit."""
        membership = self.membership
        if membership.protocol_type is None:
            return commit_ms
        if self.is_empty:
            return commit_ms if membership.changed_ms == NEVER_MS else membership.changed_ms
        if membership.state is ClassicGroupState.STABLE and self._subscribed_topics() is not None:
            return commit_ms
        return None

    def tombstones(self) -> Iterator[StoredRecord]:
        """Return the record that takes back the group's own."""
        yield StoredRecord(GroupMetadataKey(group=self.group_id), None)

    def _subscribed_topics(self) -> frozenset[str] | None:
        """Return what all members of this generation read, None if that is not known."""
        membership = self.membership
        if membership.protocol_type != CONSUMER:
            return None
        if self._topics is None or self._topics[0] != membership.generation:
            said = [each.metadata(membership.protocol) for each in membership.members.values()]
            self._topics = membership.generation, subscribed_topics(said)
        return self._topics[1]


def replay_classic_group(
    shelf: GroupShelf,
    _offset: Offset,
    _producer_id: ProducerId,
    key: GroupMetadataKey,
    value: GroupMetadataValue | None,
) -> None:
    """Apply a group's record: its membership, if there is one, is there already."""
    if value is None:
        shelf.groups.pop(key.group, None)
        return
    group = shelf.groups.get(key.group)
    if isinstance(group, ClassicGroup):
        group.recorded = value
    else:
        membership = shelf.forming.pop(key.group, None)
        shelf.groups[key.group] = ClassicGroup(key.group, value, membership)
