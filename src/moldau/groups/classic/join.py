"""JoinGroup: becoming a member, and staying one in the next generation."""

from typing import TYPE_CHECKING, Final

from moldau.coordination.command import Ticket
from moldau.coordination.decision import Decision
from moldau.coordination.refusal import Refusal
from moldau.groups.classic.decision_builder import (
    ClassicSessionTimer,
    DecisionBuilder,
    refused_join,
)
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.member import ClassicMember, Protocols
from moldau.groups.classic.membership import ClassicGroupState, ClassicMembers
from moldau.groups.classic.rebalance import go_on, joined, prepare
from moldau.groups.commands import JoinGroup
from moldau.groups.group import GroupType
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.join_group import JoinGroupResponse

if TYPE_CHECKING:
    from moldau.coordination.stored_record import StoredRecord

NEW_MEMBER_TIMEOUT_MS: Final = 5 * 60 * 1000
"""How long the JoinGroup of a new member waits. A client that is gone cannot be told from one
that waits; if this one is still there, it asks again."""

FIRST_WITH_MEMBER_IDS: Final = 4
"""KIP-394: from this version on, a member joins with an id that it was given before."""

FIRST_WITH_SKIPPED_ASSIGNMENT: Final = 9
"""KIP-814: from this version on, a leader that was started again can be told to assign nothing."""


def decide_join(
    shelf: GroupShelf, asked: JoinGroup, ticket: Ticket[JoinGroupResponse], now: Instant
) -> Decision[JoinGroupResponse]:
    """Decide a JoinGroup; a group that is not known begins with its first member."""
    request = asked.request
    group = shelf.groups.get(request.group_id)
    before: list[StoredRecord] = []
    if group is not None and group.type is GroupType.CONSUMER and group.is_empty:
        before.extend(group.tombstones())
        group = None
    if group is not None and group.type is not GroupType.CLASSIC:
        return Decision(response=refused_join("", ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    is_begun = isinstance(group, ClassicGroup)
    if not is_begun and request.member_id:
        return Decision(response=refused_join(request.member_id, ErrorCode.UNKNOWN_MEMBER_ID))
    membership = (
        group.membership if isinstance(group, ClassicGroup) else ClassicMembers(now.wall_ms)
    )
    draft = DecisionBuilder(shelf, request.group_id, membership, now)
    try:
        join = _Join(draft, asked, ticket)
        response = join.of_member() if request.member_id else join.of_newcomer(shelf)
    except Refusal as refusal:
        return Decision(response=refused_join(request.member_id, refusal.code))
    if not is_begun:
        shelf.forming[request.group_id] = membership
        draft.records.extend(before)
        draft.records.append(ClassicMembers(now.wall_ms).record(request.group_id))
    return draft.decision(response)


class _Join:
    """One JoinGroup; what its methods return is the answer, None if that waits."""

    def __init__(
        self, draft: DecisionBuilder, asked: JoinGroup, ticket: Ticket[JoinGroupResponse]
    ) -> None:
        self._draft = draft
        self._membership = draft.membership
        self._asked = asked
        self._request = asked.request
        self._ticket = ticket
        self._protocols: Protocols = tuple(
            (each.name, bytes(each.metadata)) for each in asked.request.protocols
        )
        # The first version has one timeout for both.
        has_both = asked.version > 0
        self._rebalance_timeout_ms = (
            self._request.rebalance_timeout_ms if has_both else self._request.session_timeout_ms
        )

    # Members that come without an id.

    def of_newcomer(self, shelf: GroupShelf) -> JoinGroupResponse | None:
        """Let a new member in, or give it an id to come with."""
        if not self._has_room(None):
            return refused_join("", ErrorCode.GROUP_MAX_SIZE_REACHED)
        self._check_protocols()
        instance_id = self._request.group_instance_id
        name = self._asked.client_id if instance_id is None else instance_id
        member_id = f"{name}-{_random_id(shelf.context.entropy(16))}"
        if instance_id is None and self._asked.version >= FIRST_WITH_MEMBER_IDS:
            self._membership.pending.add(member_id)
            timer = ClassicSessionTimer(self._draft.group_id, member_id)
            self._draft.ring(timer, self._request.session_timeout_ms)
            return refused_join(member_id, ErrorCode.MEMBER_ID_REQUIRED)
        if instance_id is not None and instance_id in self._membership.static:
            return self._replace(member_id)
        self._add(member_id)
        return None

    def _add(self, member_id: str) -> None:
        membership = self._membership
        member = ClassicMember(
            member_id=member_id,
            instance_id=self._request.group_instance_id,
            client_id=self._asked.client_id,
            client_host=self._asked.client_host,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            session_timeout_ms=self._request.session_timeout_ms,
            protocols=self._protocols,
            is_new=True,
            join=self._ticket,
        )
        membership.has_grown = True
        membership.add(member, self._request.protocol_type)
        self._draft.renew(member, NEW_MEMBER_TIMEOUT_MS)
        go_on(self._draft)

    def _replace(self, member_id: str) -> JoinGroupResponse | None:
        """Let a static member that was started again take its own place, from any that has it."""
        assert self._request.group_instance_id is not None
        draft, membership = self._draft, self._membership
        member = membership.members[membership.static[self._request.group_instance_id]]
        old_leader = membership.leader
        draft.forget(member, ErrorCode.FENCED_INSTANCE_ID)
        membership.rename(member, member_id)
        member.is_new = False
        self._update(member)
        draft.renew(member)
        if membership.state is not ClassicGroupState.STABLE:
            draft.wait_joined(member, self._ticket)
            go_on(draft)
            return None
        if membership.choose_protocol() != membership.protocol or not draft.try_record():
            draft.wait_joined(member, self._ticket)
            prepare(draft)
            return None
        # It gets what it had: the other members need not know that it was away.
        response = joined(membership, member)
        if self._asked.version >= FIRST_WITH_SKIPPED_ASSIGNMENT:
            response.skip_assignment = membership.leader == member_id
        else:
            # It would assign if it knew that it leads; its old id leads, as far as it is told.
            response.leader = old_leader or ""
            response.members = ()
        return response

    # Members that come with an id.

    def of_member(self) -> JoinGroupResponse | None:
        """Let a member go on to the next generation, or tell it again of the present one."""
        membership, member_id = self._membership, self._request.member_id
        if not self._has_room(member_id):
            membership.pending.discard(member_id)
            if member_id in membership.members:
                self._draft.drop(membership.members[member_id])
            return refused_join("", ErrorCode.GROUP_MAX_SIZE_REACHED)
        self._check_protocols()
        if member_id in membership.pending:
            if self._request.group_instance_id is not None:
                raise Refusal(
                    ErrorCode.UNKNOWN_SERVER_ERROR, "Static members get no id before they join."
                )
            self._add(member_id)
            return None
        membership.check_member(member_id, self._request.group_instance_id)
        member = membership.members[member_id]
        is_same = member.protocols == self._protocols
        is_leader = membership.leader == member_id
        if membership.state is ClassicGroupState.COMPLETING and is_same:
            # It has not heard of this generation: the answer was lost.
            return joined(membership, member)
        if membership.state is ClassicGroupState.STABLE and is_same and not is_leader:
            # It asks for its part next. The leader may know of something to assign anew.
            return joined(membership, member)
        self._update(member)
        self._draft.wait_joined(member, self._ticket)
        go_on(self._draft)
        return None

    # What both have to be.

    def _has_room(self, member_id: str | None) -> bool:
        membership = self._membership
        member = None if member_id is None else membership.members.get(member_id)
        size_max = self._draft.settings.group_max_size
        match membership.state:
            case ClassicGroupState.EMPTY:
                return True
            case ClassicGroupState.PREPARING:
                # Counted by the members that have joined: the last ones to join again find no
                # place if the maximum has become less.
                is_in = member is not None and member.join is not None
                return is_in or membership.joined_count < size_max
            case ClassicGroupState.COMPLETING | ClassicGroupState.STABLE:
                return member is not None or len(membership.members) < size_max

    def _check_protocols(self) -> None:
        names = [name for name, _ in self._protocols]
        if not self._membership.understands(self._request.protocol_type, names):
            raise Refusal(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                "The members of a group are of one type, and all speak one protocol at least.",
            )

    def _update(self, member: ClassicMember) -> None:
        self._membership.speak(member, self._protocols)
        member.rebalance_timeout_ms = self._rebalance_timeout_ms
        member.session_timeout_ms = self._request.session_timeout_ms


def _random_id(entropy: bytes) -> str:
    """Return a random UUID as text, as Kafka's ids have it."""
    number = bytearray(entropy)
    number[6] = number[6] & 0x0F | 0x40
    number[8] = number[8] & 0x3F | 0x80
    text = number.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
