"""The members of a classic group, and how far its rebalance is."""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from moldau.coordination.refusal import Refusal
from moldau.coordination.stored_record import StoredRecord
from moldau.groups.classic.member import ClassicMember, Protocols, member_of_record
from moldau.kernel.clock import Instant
from moldau.protocol.errors import ErrorCode
from moldau.protocol.stored.offsets import GroupMetadataKey, GroupMetadataValue

VALUE_VERSION: Final = 3
"""Of the group's record, as Kafka 4.3 writes it."""

NEVER_MS: Final = -1


class ClassicGroupState(Enum):
    """A group's state; the values are Kafka's words for it."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"  # members are waited for to join
    COMPLETING = "CompletingRebalance"  # the leader's assignment is waited for
    STABLE = "Stable"


# What each state may follow on.
_BEFORE: Final[Mapping[ClassicGroupState, frozenset[ClassicGroupState]]] = {
    ClassicGroupState.EMPTY: frozenset({ClassicGroupState.PREPARING}),
    ClassicGroupState.PREPARING: frozenset(
        {ClassicGroupState.EMPTY, ClassicGroupState.COMPLETING, ClassicGroupState.STABLE}
    ),
    ClassicGroupState.COMPLETING: frozenset({ClassicGroupState.PREPARING}),
    ClassicGroupState.STABLE: frozenset({ClassicGroupState.COMPLETING}),
}


class ClassicMembers:
    """Soft: what is recorded of it is the generation that was assigned last.

    A restart goes back to that one. No member has been told then what it reads in a later one, so
    that it can be begun again, under the same number.
    """

    def __init__(self, changed_ms: int) -> None:
        self.state = ClassicGroupState.EMPTY
        self.is_initial = False
        """Whether the rebalance under way began with an empty group."""
        self.changed_ms = changed_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static: dict[str, str] = {}
        """The ids of members by the names of their instances."""
        self.pending: set[str] = set()
        """Ids that were given out (KIP-394); the members are yet to join with them."""
        self.unsynced: set[str] = set()
        """Members of this generation that have not asked for their part yet."""
        self.delay_ms = 0
        self.delay_left_ms = 0
        """How long the first rebalance waits, and may wait longer when members come."""
        self.has_grown = False
        """Whether a member came while the first rebalance waited."""
        self._speakers: Counter[str] = Counter()

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long members may take to join again."""
        return max((each.rebalance_timeout_ms for each in self.members.values()), default=0)

    @property
    def joined_count(self) -> int:
        """How many members wait for the next generation."""
        return sum(each.join is not None for each in self.members.values())

    @property
    def has_all_joined(self) -> bool:
        """Whether no member has to be waited for."""
        return not self.pending and all(each.join is not None for each in self.members.values())

    def move(self, state: ClassicGroupState, now: Instant) -> None:
        """Enter another state."""
        assert self.state in _BEFORE[state], f"{self.state} to {state}"
        self.is_initial = self.state is ClassicGroupState.EMPTY
        self.state = state
        self.changed_ms = now.wall_ms

    # Members.

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Refuse an id that is no member's, or whose instance has another by now."""
        if instance_id is not None:
            known = self.static.get(instance_id)
            if known is not None and known != member_id:
                raise Refusal(
                    ErrorCode.FENCED_INSTANCE_ID, "Another member has taken this instance's place."
                )
        if member_id not in self.members or (
            instance_id is not None and instance_id not in self.static
        ):
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, "The group has no such member.")

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        """Add a member."""
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id
        self.members[member.member_id] = member
        self._speakers.update(member.names)
        self.pending.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member."""
        member = self.members.pop(member_id)
        self._speakers.subtract(member.names)
        if member.instance_id is not None:
            del self.static[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.unsynced.discard(member_id)

    def rename(self, member: ClassicMember, member_id: str) -> None:
        """Give a static member another id: it was started again."""
        assert member.instance_id is not None
        del self.members[member.member_id]
        self.unsynced.discard(member.member_id)
        if self.leader == member.member_id:
            self.leader = member_id
        member.member_id = member_id
        self.members[member_id] = member
        self.static[member.instance_id] = member_id

    def elect_joined(self) -> bool:
        """Make sure that the leader is a member that joined; return whether there is any."""
        if self.leader is not None and self.members[self.leader].join is None:
            joined = (each.member_id for each in self.members.values() if each.join is not None)
            leader = next(joined, None)
            if leader is None:
                return False
            self.leader = leader
        return self.leader is not None

    # Protocols.

    def speak(self, member: ClassicMember, protocols: Protocols) -> None:
        """Note what a member can speak now."""
        self._speakers.subtract(member.names)
        member.protocols = protocols
        self._speakers.update(member.names)

    def understands(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether all members speak one of these protocols."""
        if self.state is ClassicGroupState.EMPTY:
            return bool(protocol_type) and any(True for _ in names)
        return self.protocol_type == protocol_type and any(
            self._speakers[name] == len(self.members) for name in names
        )

    def choose_protocol(self) -> str:
        """Return what most members like best of what all can speak."""
        votes = Counter(
            next(name for name, _ in each.protocols if self._speakers[name] == len(self.members))
            for each in self.members.values()
        )
        return votes.most_common(1)[0][0]

    # Records.

    def record(self, group_id: str) -> StoredRecord:
        """Return the record of this generation."""
        value = GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=self.changed_ms,
            members=[each.to_record(self.protocol) for each in self.members.values()],
        )
        return StoredRecord(GroupMetadataKey(group=group_id), value, VALUE_VERSION)


def membership_of(recorded: GroupMetadataValue | None) -> ClassicMembers:
    """Return the membership that was recorded last; without a record it never had a member."""
    membership = ClassicMembers(NEVER_MS if recorded is None else recorded.current_state_timestamp)
    if recorded is None:
        return membership
    for each in recorded.members:
        membership.add(member_of_record(each, recorded.protocol or ""), recorded.protocol_type)
    membership.state = ClassicGroupState.STABLE if recorded.members else ClassicGroupState.EMPTY
    membership.generation = recorded.generation
    membership.protocol_type = recorded.protocol_type or None
    membership.protocol = recorded.protocol
    if recorded.leader in membership.members:
        membership.leader = recorded.leader
    return membership
